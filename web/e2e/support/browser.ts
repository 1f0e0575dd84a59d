// The system's Chromium, and what every test wants to know of its pages.

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { chromium, type Browser, type BrowserContext, type Locator, type Page, type WebSocketRoute } from "playwright-core";
import type { House } from "./house";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
];

export function findChromium(): string | null {
  if (process.env.CHROMIUM !== undefined) return process.env.CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  for (const name of ["chromium", "chromium-browser"]) {
    const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
    if (found !== undefined) return found;
  }
  return null;
}

export function launch(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === null) throw new Error("there is no Chromium");
  return chromium.launch({ executablePath, args: FLAGS });
}

/** A page with what went wrong in it. */
export interface Watched {
  page: Page;
  context: BrowserContext;
  /** Violations of the policy, errors of scripts, requests to other hosts. */
  faults: string[];
  /** Messages of the sockets, cut, in order. */
  frames: string[];
}

export interface Look {
  theme?: "light" | "dark";
  size?: { width: number; height: number };
}

export async function visit(browser: Browser, url: string, look: Look = {}): Promise<Watched> {
  const context = await browser.newContext({ viewport: look.size ?? { width: 1440, height: 900 }, colorScheme: look.theme ?? "light", ...(look.size !== undefined && look.size.width < 500 ? { hasTouch: true, isMobile: true } : {}) });
  return open(context, url);
}

export async function open(context: BrowserContext, url: string): Promise<Watched> {
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  const faults: string[] = [];
  const own = new URL(url).host;
  page.on("console", (message) => { if (message.type() === "error") faults.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { faults.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (to.protocol !== "data:" && to.host !== own) faults.push(`request: ${request.url()}`);
  });
  const frames: string[] = [];
  page.on("websocket", (socket) => {
    socket.on("framesent", ({ payload }) => frames.push(`→ ${String(payload).slice(0, 2000)}`));
    socket.on("framereceived", ({ payload }) => frames.push(`← ${String(payload).slice(0, 2000)}`));
  });
  await page.goto(url);
  return { page, context, faults, frames };
}

/** Wait for the Workspace to take text. */
export async function ready(page: Page): Promise<void> {
  await page.locator("#pane-workspace .cm-content").waitFor();
}

/** Replace the text of the Workspace. */
export async function type(page: Page, text: string): Promise<void> {
  const content = page.locator("#pane-workspace .cm-content");
  await content.click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

/** Do not wait for the next try to connect; it may have been made by itself, and the button is gone with it. */
export async function hurry(page: Page): Promise<void> {
  await page.evaluate(() => [...document.querySelectorAll<HTMLButtonElement>(".banner button")].find((one) => one.textContent === "Now")?.click());
}

/** Evaluate a text in the Workspace and wait for what came of it. */
export async function evaluate(page: Page, text: string, key = "ControlOrMeta+p"): Promise<Locator> {
  const results = page.locator("#pane-workspace .surface .result");
  const before = await results.evaluateAll((all) => all.map((one) => one.getAttribute("data-id")));
  await type(page, text);
  await page.keyboard.press(key);
  const found = await page.waitForFunction((old) => {
    const all = [...document.querySelectorAll("#pane-workspace .surface .result:not(.running)")].map((one) => one.getAttribute("data-id"));
    return all.find((id) => !old.includes(id));
  }, before, { timeout: 30_000 });
  return results.and(page.locator(`[data-id="${String(await found.jsonValue())}"]`));
}

export async function shot(watched: Watched, name: string): Promise<void> {
  const { page } = watched;
  for (const theme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme: theme });
    await page.screenshot({ path: `e2e/shots/${name}-${theme}.png`, animations: "disabled" });
  }
  await page.emulateMedia({ colorScheme: "light" });
}

export async function enter(browser: Browser, house: House, ...flags: string[]): Promise<Watched> {
  const watched = await visit(browser, await house.url(...flags));
  await watched.page.waitForFunction(() => location.hash !== "" || document.querySelector(".foot") !== null);
  return watched;
}

/** The line of a context to its daemon, to be cut and mended. Pages opened from now on use it. */
export async function cable(context: BrowserContext): Promise<{ cut: () => void; mend: () => void }> {
  const open = new Set<WebSocketRoute>();
  let isCut = false;
  await context.routeWebSocket(/\/ws$/, (socket) => {
    if (isCut) return void socket.close({ code: 3000 });
    open.add(socket);
    socket.connectToServer();
  });
  return {
    cut: () => {
      isCut = true;
      for (const socket of open) void socket.close({ code: 3000 });
      open.clear();
    },
    mend: () => { isCut = false; },
  };
}
