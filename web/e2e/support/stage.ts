// One daemon, one browser and one page for a file of tests; what a failed test leaves behind to look at.

import { mkdirSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { enter, evaluate, launch, open, ready, type Watched } from "./browser";
import { House } from "./house";

/** Do something, but not for longer than that. */
async function within<T>(ms: number, late: string, run: () => Promise<T> | T): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const over = new Promise<never>((_, reject) => { timer = setTimeout(() => reject(new Error(late)), ms); });
  try {
    return await Promise.race([Promise.resolve(run()), over]);
  } finally {
    clearTimeout(timer);
  }
}

export class Stage {
  house!: House;
  browser!: Browser;
  watched!: Watched;
  private count = 0;

  /** Opens everything before the tests of a file and ends it after them. */
  static of(files: Record<string, string> = {}, flags: string[] = [], prepare: (stage: Stage) => Promise<unknown> = async () => undefined): Stage {
    const stage = new Stage();
    before(async () => {
      [stage.house, stage.browser] = await Promise.all([House.open(files), launch()]);
      stage.watched = await enter(stage.browser, stage.house, ...flags);
      // What was done, asked and said, without pictures of every step: those would slow down what is measured.
      await stage.watched.context.tracing.start({ snapshots: false, screenshots: false });
      if (!flags.includes("--observer")) await ready(stage.page);
      await prepare(stage);
    }, { timeout: 60_000 });
    after(async () => {
      await stage.browser?.close();
      await stage.house?.close();
    });
    return stage;
  }

  get page(): Page {
    return this.watched.page;
  }

  pane(name: string): Locator {
    return this.page.getByRole("region", { name, exact: true });
  }

  get results(): Locator {
    return this.page.locator("#pane-workspace .surface .result");
  }

  /** Evaluate a text and wait for what came of it. */
  evaluate(text: string, key?: string): Promise<Locator> {
    return evaluate(this.page, text, key);
  }

  /** The value of an expression as the Workspace prints it. */
  async value(text: string): Promise<string> {
    return (await this.evaluate(text)).locator(".value").innerText();
  }

  /** Close the page and open another tab of the same login. */
  async reopen(hash = ""): Promise<void> {
    const { context, page, faults, frames } = this.watched;
    const url = page.url().split("#")[0] ?? "";
    await page.close();
    const next = await open(context, url + hash);
    next.faults.push(...faults);
    next.frames.push(...frames);
    this.watched = next;
  }

  async goTo(hash: string): Promise<void> {
    await this.page.evaluate((to) => { location.hash = to; }, hash);
  }

  /** Choose from the palette. */
  async choose(text: string): Promise<void> {
    await this.page.keyboard.press("ControlOrMeta+k");
    await this.page.keyboard.type(text);
    await this.page.keyboard.press("Enter");
  }

  /** A test; when it fails its trace, pages, messages and log are kept in e2e/failed, and what it opened is closed. */
  test(name: string, run: () => Promise<void> | void, timeout = 90_000): void {
    // What is known of a test that hangs is looked at before it is given up.
    test(name, { timeout: timeout + 60_000 }, async () => {
      const { tracing } = this.watched.context;
      const before = new Set(this.pages());
      await tracing.startChunk({ title: name });
      try {
        await within(timeout, `not done after ${timeout} ms`, run);
        await tracing.stopChunk().catch(() => undefined);
      } catch (cause) {
        const folder = this.folder(name);
        writeFileSync(`${folder}/scripts.txt`, await this.scripts());
        await within(10_000, "no trace", () => tracing.stopChunk({ path: `${folder}/trace.zip` })).catch(() => undefined);
        await this.keep(folder).catch(() => undefined);
        await this.tidy(before);
        throw cause;
      }
    });
  }

  private pages(): Page[] {
    return this.browser.contexts().flatMap((context) => context.pages());
  }

  /** Close what a failed test left open, so that the next one finds what it would find otherwise: one page, which answers. */
  private async tidy(before: ReadonlySet<Page>): Promise<void> {
    const left = this.pages().filter((page) => !before.has(page) && page !== this.page);
    await within(10_000, "", () => Promise.all(left.map((page) => page.close()))).catch(() => undefined);
    const isWell = await within(5000, "", () => this.page.evaluate(() => document.querySelector(".foot")?.textContent?.includes("connected") === true)).catch(() => false);
    if (!isWell) await within(20_000, "", () => this.reopen()).catch(() => undefined);
  }

  /** What the script of every page does right now. */
  private async scripts(): Promise<string> {
    const told = this.pages().map(async (page) => {
      const session = await page.context().newCDPSession(page);
      const paused = new Promise<string>((resolve) => session.on("Debugger.paused", ({ callFrames }) => resolve(callFrames.slice(0, 20).map((one) => `  ${one.functionName} ${one.url}:${one.location.lineNumber}:${one.location.columnNumber ?? 0}`).join("\n"))));
      await session.send("Debugger.enable");
      await session.send("Debugger.pause");
      const stack = await within(2000, "", () => paused).catch(() => "  nothing");
      await session.send("Debugger.resume").catch(() => undefined);
      await session.detach();
      return `${page.url()}\n${stack}`;
    });
    return (await Promise.all(told.map((one) => within(5000, "no answer of the page", () => one).catch(String)))).join("\n");
  }

  /** Where what is known of a failed test goes. */
  private folder(name: string): string {
    this.count += 1;
    const folder = `e2e/failed/${basename(process.argv[1] ?? "test", ".mjs")}-${this.count}-${name.replaceAll(/\W+/g, "-").slice(0, 40)}`;
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  private async keep(folder: string): Promise<void> {
    writeFileSync(`${folder}/frames.txt`, this.watched.frames.filter((one) => !one.includes("vitals")).slice(-400).join("\n"));
    writeFileSync(`${folder}/faults.txt`, this.watched.faults.join("\n"));
    writeFileSync(`${folder}/daemon.log`, await this.house.log().catch(String));
    for (const [at, page] of this.pages().entries()) {
      await page.screenshot({ path: `${folder}/page-${at + 1}.png`, timeout: 3000 }).catch(() => undefined);
      writeFileSync(`${folder}/page-${at + 1}.html`, await within(3000, "no answer of the page", () => page.content()).catch(String));
    }
  }
}
