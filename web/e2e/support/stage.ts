// One daemon, one browser and one page for a file of tests; what a failed test leaves behind to look at.

import { mkdirSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { after, before, test } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { enter, launch, open, ready, type, type Watched } from "./browser";
import { House } from "./house";

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
  async evaluate(text: string, key = "ControlOrMeta+p"): Promise<Locator> {
    const ids = (): Promise<(string | null)[]> => this.results.evaluateAll((all) => all.map((one) => one.getAttribute("data-id")));
    const before = await ids();
    await type(this.page, text);
    await this.page.keyboard.press(key);
    const found = await this.page.waitForFunction((old) => {
      const all = [...document.querySelectorAll("#pane-workspace .surface .result:not(.running)")].map((one) => one.getAttribute("data-id"));
      return all.find((id) => !old.includes(id));
    }, before, { timeout: 30_000 });
    return this.results.and(this.page.locator(`[data-id="${String(await found.jsonValue())}"]`));
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

  /** A test; when it fails its trace, pages, messages and log are kept in e2e/failed. */
  test(name: string, run: () => Promise<void> | void, timeout = 90_000): void {
    test(name, { timeout }, async () => {
      const { tracing } = this.watched.context;
      await tracing.startChunk({ title: name });
      try {
        await run();
        await tracing.stopChunk().catch(() => undefined);
      } catch (cause) {
        const folder = this.folder(name);
        await tracing.stopChunk({ path: `${folder}/trace.zip` }).catch(() => undefined);
        await this.keep(folder).catch(() => undefined);
        throw cause;
      }
    });
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
    const pages = this.browser.contexts().flatMap((context) => context.pages());
    for (const [at, page] of pages.entries()) {
      await page.screenshot({ path: `${folder}/page-${at + 1}.png`, timeout: 3000 }).catch(() => undefined);
      writeFileSync(`${folder}/page-${at + 1}.html`, await page.content().catch(String));
    }
  }
}
