// What other pages, other servers and old servers of the same browser can do to a workspace that is open in it.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { request } from "node:http";
import { gunzipSync } from "node:zlib";
import type { Page } from "playwright-core";
import { launch, open, ready } from "../support/browser";
import { House } from "../support/house";
import { Stage } from "../support/stage";
import { stranger } from "../support/strangers";

const stage = Stage.of();

const html = (text: string): { type: string; text: string } => ({ type: "text/html", text: `<!doctype html><body>${text}</body>` });
const own = (): URL => new URL(stage.page.url());

async function audited(what: string): Promise<void> {
  const trail = await stage.house.beamtalk("--json", "workspace", "audit");
  assert.match(trail, new RegExp(what), `the trail says ${what}`);
}

/** A request by hand, with headers a browser would not send. */
function ask(method: string, path: string, headers: Record<string, string>, body = ""): Promise<{ status: number; text: string; cookies: string[] }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port: own().port, method, path, headers: { ...headers, "content-length": Buffer.byteLength(body) } }, (answer) => {
      let text = "";
      answer.on("data", (piece) => { text += String(piece); });
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text, cookies: answer.headers["set-cookie"] ?? [] }));
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

async function away(text: string, run: (page: Page, port: number) => Promise<void>): Promise<void> {
  const other = await stranger({ "/": html(text) });
  const page = await stage.watched.context.newPage();
  try {
    await page.goto(`http://127.0.0.1:${other.port}/`);
    await run(page, other.port);
  } finally {
    await page.close();
    await other.close();
  }
}

stage.test("S8 no other page shows the workspace in a frame or holds its window", async () => {
  const url = own().origin;
  await away(`<iframe src="${url}/"></iframe><object data="${url}/"></object>`, async (page) => {
    await page.waitForLoadState("load");
    for (const frame of page.frames().slice(1)) assert.equal(await frame.locator("#app").count(), 0, frame.url());
    const popup = page.waitForEvent("popup");
    const isSevered = await page.evaluate((to) => {
      const made = window.open(to);
      return new Promise<boolean>((resolve) => {
        const look = (): void => { if (made === null || made.closed) resolve(true); else setTimeout(look, 50); };
        look();
      });
    }, `${url}/`);
    assert.ok(isSevered, "the opener loses its hold");
    const opened = await popup;
    await opened.waitForLoadState();
    assert.ok(await opened.evaluate(() => opener === null));
    await opened.close();
  });
});

stage.test("S9 requests and sockets of other pages are refused and recorded", async () => {
  const url = own().origin;
  await away("<form method=post></form>", async (page) => {
    const fetched = await page.evaluate((to) => fetch(to, { credentials: "include" }).then((answer) => answer.type, () => "refused"), `${url}/`);
    assert.equal(fetched, "refused");
    const socket = await page.evaluate((to) => new Promise<string>((resolve) => {
      const made = new WebSocket(to, ["beamtalk.v1"]);
      made.onopen = () => { made.send(JSON.stringify({ type: "hello", client: "browser", protocol: "1.1" })); };
      made.onmessage = (event) => { if (String(event.data).includes("session-started")) resolve("a session"); };
      made.onclose = () => resolve("closed");
      made.onerror = () => resolve("closed");
    }), `${url.replace("http", "ws")}/ws`);
    assert.equal(socket, "closed");
    const posted = page.waitForResponse((answer) => answer.url().endsWith("/login"));
    await page.evaluate((to) => { const form = document.querySelector("form"); if (form !== null) { form.action = to; form.submit(); } }, `${url}/login`);
    assert.equal((await posted).status(), 403);
  });
  await audited("origin");
  assert.equal(await stage.value("1 + 2"), "3");
});

stage.test("S10 another host name is refused", async () => {
  for (const host of ["evil.example", `evil.example:${own().port}`, "[::1]:1"]) {
    assert.equal((await ask("GET", "/", { host })).status, 403, host);
  }
  await audited("host");
});

stage.test("S11 a login is good once, under its own name, in a form", async () => {
  const token = async (): Promise<string> => new URL(await stage.house.url()).hash.slice("#login=".length);
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const body = `token=${await token()}`;
  const host = own().host;
  const first = await ask("POST", "/login", { host, ...form }, body);
  assert.equal(first.status, 303);
  assert.match(first.cookies[0] ?? "", /HttpOnly; SameSite=Strict/);
  const second = await ask("POST", "/login", { host, ...form }, body);
  assert.deepEqual([second.status, second.text, second.cookies], [403, "", []]);
  const plain = await ask("POST", "/login", { host: `127.0.0.1:${own().port}`, ...form }, `token=${await token()}`);
  assert.deepEqual([plain.status, plain.text], [403, ""]);
  const query = await ask("POST", `/login?token=${await token()}`, { host, ...form });
  assert.deepEqual([query.status, query.text], [403, ""]);
  assert.equal(await stage.value("2 + 2"), "4", "the first login stays");
});

stage.test("S12 other servers of this machine get no cookie", async () => {
  const other = await stranger({ "/": html("hello") });
  const page = await stage.watched.context.newPage();
  for (const name of ["127.0.0.1", "localhost", "other.localhost"]) await page.goto(`http://${name}:${other.port}/`);
  assert.ok(other.asked.length >= 3);
  for (const one of other.asked) assert.equal(one.headers.cookie, undefined, JSON.stringify(one.headers));
  await page.close();
  await other.close();
});

stage.test("S13 a worker left by an earlier server on the same port sees nothing", async () => {
  const worker = "self.addEventListener('install',()=>self.skipWaiting());self.addEventListener('activate',(e)=>e.waitUntil(self.clients.claim()));self.addEventListener('fetch',(e)=>{e.respondWith(new Response('caught'))});";
  const old = await stranger({ "/": html("<script>navigator.serviceWorker.register('/worker.js').then(()=>navigator.serviceWorker.ready).then(()=>{document.title='ready'})</script>"), "/worker.js": { type: "text/javascript", text: worker } });
  const browser = await launch();
  const house = new Promise<House>((resolve, reject) => {
    void (async () => {
      const context = await browser.newContext();
      const page = await context.newPage();
      for (const name of ["127.0.0.1", "localhost"]) {
        await page.goto(`http://${name}:${old.port}/`);
        await page.waitForFunction(() => document.title === "ready");
      }
      await page.close();
      await old.close();
      const made = await House.open({}, ["--port", String(old.port)]);
      const watched = await open(context, await made.url());
      await ready(watched.page);
      assert.equal(await watched.page.evaluate(() => document.body.innerText.includes("caught")), false);
      assert.equal(await watched.page.evaluate(() => navigator.serviceWorker.getRegistrations().then((all) => all.length)), 0);
      assert.deepEqual(watched.faults, []);
      resolve(made);
    })().catch(reject);
  });
  try {
    await (await house).close();
  } finally {
    await browser.close();
  }
});

stage.test("S14 no secret is anywhere a script can read", async () => {
  const home = own().origin;
  const seen = await stage.page.evaluate(() => [document.cookie, document.documentElement.outerHTML, JSON.stringify(sessionStorage), JSON.stringify(localStorage), location.href, document.referrer, JSON.stringify(history.state), ...performance.getEntries().map((one) => one.name)].join("\n"));
  assert.deepEqual(await stage.page.evaluate(async () => [await caches.keys(), (await indexedDB.databases()).length]), [[], 0]);
  // Going back does not lead to the address with the token.
  await stage.page.goBack().catch(() => null);
  assert.doesNotMatch(stage.page.url(), /login=/);
  await stage.page.goto(home);
  await ready(stage.page);
  const cookies = await stage.watched.context.cookies();
  assert.equal(cookies.length, 1);
  for (const cookie of cookies) {
    assert.ok(cookie.httpOnly && cookie.sameSite === "Strict");
    assert.ok(!seen.includes(cookie.value) && !seen.includes(cookie.name));
  }
  assert.doesNotMatch(seen, /login=|btk_/);
  assert.doesNotMatch(stage.watched.frames.join("\n"), /login=|btk_|cookie/i);
});

stage.test("S19 the policy refuses markup and code made of text", async () => {
  const refused = await stage.page.evaluate(() => {
    const tries: Record<string, () => unknown> = {
      eval: () => (0, eval)("1"),
      function: () => new Function("return 1")(),
      innerHTML: () => { document.createElement("div").innerHTML = "<b>x</b>"; },
      timer: () => setTimeout("globalThis.pwned = 1" as unknown as () => void, 0),
      script: () => { const made = document.createElement("script"); made.textContent = "globalThis.pwned = 1"; document.body.append(made); },
    };
    const refuses = ([, run]: [string, () => unknown]): boolean => { try { run(); return false; } catch { return true; } };
    // In a task of the page's own: what the test itself runs is above the policy.
    return new Promise<string[]>((resolve) => { setTimeout(() => resolve(Object.entries(tries).filter(refuses).map(([name]) => name)), 0); });
  });
  assert.deepEqual(refused, ["eval", "function", "innerHTML", "timer", "script"]);
  assert.equal(await stage.page.evaluate(() => "pwned" in globalThis), false);
  // These violations were asked for.
  stage.watched.faults.length = 0;
});

stage.test("S28 what is served is what was built, byte by byte", async () => {
  const names = readdirSync("dist/assets");
  assert.ok(names.length >= 4);
  for (const name of names) {
    const served = await stage.page.evaluate(async (path) => [...new Uint8Array(await (await fetch(path)).arrayBuffer())], `/assets/${name.replace(/\.gz$/, "")}`);
    assert.ok(Buffer.from(served).equals(gunzipSync(readFileSync(`dist/assets/${name}`))), name);
  }
});

stage.test("the answers carry what browsers need to protect them", async () => {
  const answer = await stage.page.goto(own().origin);
  const headers = answer?.headers() ?? {};
  const socket = own().origin.replace("http", "ws");
  const policy = (headers["content-security-policy"] ?? "").replace(/nonce-[0-9a-f]{32}/, "nonce-N");
  assert.equal(policy, `default-src 'none'; script-src 'self'; style-src-elem 'self' 'nonce-N'; style-src-attr 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self' ${socket}; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'`);
  assert.equal(headers["cache-control"], "no-store");
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.equal(headers["cross-origin-opener-policy"], "same-origin");
  assert.equal(headers["permissions-policy"], "camera=(), microphone=(), geolocation=(), usb=(), payment=()");
  const nonce = /nonce-([0-9a-f]{32})/.exec(headers["content-security-policy"] ?? "")?.[1];
  const again = await stage.page.reload();
  assert.notEqual(/nonce-([0-9a-f]{32})/.exec(again?.headers()["content-security-policy"] ?? "")?.[1], nonce);
  await ready(stage.page);
});
