// e2e/support/house.ts
import { execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
var run = promisify(execFile);
var BINARY = process.env.BEAMTALK_BINARY ?? resolve("../target/debug/beamtalk");
var FILES = {
  "beamtalk.toml": '[package]\nname = "lamp"\nversion = "0.1.0"\n',
  "src/Lamp.bt": `/// A lamp that can be switched.
Actor subclass: Lamp
  state: on = false

  /// Switch it, and answer whether it is on.
  toggle => self.on := self.on not

  isOn => self.on

  broken => self missing: 3
`,
  "test/LampTest.bt": `TestCase subclass: LampTest

  testToggle =>
    lamp := Lamp spawn
    lamp toggle
    self assert: lamp isOn

  testTwice =>
    lamp := Lamp spawn
    lamp toggle
    lamp toggle
    self deny: lamp isOn
`
};
var House = class _House {
  constructor(root) {
    this.root = root;
    this.home = join(root, "home");
    this.project = join(root, "lamp");
  }
  root;
  home;
  project;
  static async open(files = {}) {
    const house2 = new _House(mkdtempSync(join(tmpdir(), "bt-web-")));
    mkdirSync(house2.home, { mode: 448 });
    chmodSync(house2.home, 448);
    for (const [name, text] of Object.entries({ ...FILES, ...files })) house2.write(name, text);
    await house2.beamtalk("workspace", "start");
    return house2;
  }
  write(name, text) {
    const path = join(this.project, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  read(name) {
    return readFileSync(join(this.project, name), "utf8");
  }
  get environment() {
    return { ...process.env, BEAMTALK_HOME: this.home, NO_COLOR: "1" };
  }
  async beamtalk(...words) {
    const { stdout } = await run(BINARY, words, { cwd: this.project, env: this.environment });
    return stdout;
  }
  /** An address that logs in once. */
  async url(...flags) {
    return (await this.beamtalk("web", "--print-url", ...flags)).trim();
  }
  /** The process of the daemon. */
  async pid() {
    const status = JSON.parse(await this.beamtalk("--json", "workspace", "status"));
    return Number(status.pid);
  }
  async close() {
    await this.beamtalk("workspace", "stop", "--force").catch(() => void 0);
    rmSync(this.root, { recursive: true, force: true });
  }
};

// e2e/support/browser.ts
import { existsSync } from "node:fs";
import { delimiter, join as join2 } from "node:path";
import { chromium } from "playwright-core";
var FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage"
];
function findChromium() {
  if (process.env.CHROMIUM !== void 0) return process.env.CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  for (const name of ["chromium", "chromium-browser"]) {
    const found = folders.map((folder) => join2(folder, name)).find((path) => existsSync(path));
    if (found !== void 0) return found;
  }
  return null;
}
function launch() {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error("there is no Chromium");
  return chromium.launch({ executablePath, args: FLAGS });
}
async function visit(browser2, url, look = {}) {
  const context = await browser2.newContext({ viewport: look.size ?? { width: 1440, height: 900 }, colorScheme: look.theme ?? "light", ...look.size !== void 0 && look.size.width < 500 ? { hasTouch: true, isMobile: true } : {} });
  return open(context, url);
}
async function open(context, url) {
  const page = await context.newPage();
  const faults = [];
  const own = new URL(url).host;
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol !== "data:" && to.host !== own) faults.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  return { page, context, faults };
}
async function ready(page) {
  await page.locator("#pane-workspace .cm-content").waitFor();
}
async function type(page, text) {
  const content = page.locator("#pane-workspace .cm-content");
  await content.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}
async function shot(watched, name) {
  const { page } = watched;
  for (const theme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: theme });
    await page.screenshot({ path: `e2e/shots/${name}-${theme}.png` });
  }
  await page.emulateMedia({ colorScheme: "light" });
}
async function enter(browser2, house2, ...flags) {
  const watched = await visit(browser2, await house2.url(...flags));
  await watched.page.waitForFunction(() => location.hash !== "" || document.querySelector(".foot") !== null);
  return watched;
}

// ../../../../tmp/look.ts
var house = await House.open();
var browser = await launch();
try {
  const w = await enter(browser, house);
  console.log(w.page.url());
  await ready(w.page).catch((e) => console.log(String(e).slice(0, 300)));
  await type(w.page, "lamp := Lamp spawn\n\nlamp toggle\n\n(1 to: 20) collect: [:x | x * x]");
  await w.page.keyboard.press("Control+p");
  await w.page.waitForTimeout(1500);
  await shot(w, "look");
  console.log(await w.page.locator("body").innerText());
  console.log(w.faults);
} finally {
  await browser.close();
  await house.close();
}
