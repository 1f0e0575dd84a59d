// Calls of AI clients that wait: shown to the owner as they come, answered for exactly what was shown, hidden from observers.

import assert from "node:assert/strict";
import { calls } from "../support/agent";
import { open, ready, visit } from "../support/browser";
import { Stage } from "../support/stage";

// The project holds everything that runs.
const stage = Stage.of({ "beamtalk.toml": '[package]\nname = "lamp"\nversion = "0.1.0"\n\n[mcp]\napproval = "execute"\n' });

const evaluates = (code: string): Promise<{ isError: boolean; text: string }> => calls(stage.house, "evaluate", { code });

stage.test("a call that waits is shown with what it would do, and goes on with a yes", async () => {
  const observer = await visit(stage.browser, await stage.house.url("--observer"));
  const done = evaluates('"<b>hostile</b> \u202e" size');
  const chip = stage.page.getByRole("button", { name: "1 call waiting" });
  await chip.waitFor();
  await chip.click();
  const dialog = stage.page.getByRole("dialog", { name: "Calls that wait" });
  await dialog.getByText("evaluate", { exact: true }).waitFor();
  assert.match(await dialog.innerText(), /owner[\s\S]*<b>hostile<\/b>[\s\S]*sha256 [0-9a-f]{64}/);
  assert.equal(await dialog.locator("b").count(), 0, "text is text");
  assert.equal(await dialog.getByRole("button", { name: "Approve always" }).count(), 0, "an evaluation is approved one at a time");
  assert.equal(await observer.page.getByText("waiting").count(), 0, "observers see none");
  await stage.page.screenshot({ path: "e2e/shots/40-approvals-light.png" });
  await dialog.getByRole("button", { name: "Approve", exact: true }).click();
  assert.equal((await done).isError, false);
  await dialog.waitFor({ state: "detached" });
  await observer.context.close();
});

stage.test("a no says why", async () => {
  const done = evaluates("1 + 1");
  await stage.page.getByRole("button", { name: "1 call waiting" }).click();
  const dialog = stage.page.getByRole("dialog", { name: "Calls that wait" });
  await dialog.getByLabel("Reason").fill("not now");
  await dialog.getByRole("button", { name: "Reject" }).click();
  const { isError, text } = await done;
  assert.ok(isError && text.includes("not now"), text);
});

stage.test("who wished it and looks elsewhere is told by the browser", async () => {
  await stage.watched.context.grantPermissions(["notifications"]);
  await stage.watched.context.addInitScript(() => {
    const told: string[] = [];
    (globalThis as unknown as { told: string[] }).told = told;
    const Real = Notification;
    globalThis.Notification = class extends Real {
      constructor(title: string, more?: NotificationOptions) {
        super(title, more);
        told.push(`${title}: ${more?.body ?? ""}`);
      }
    };
  });
  const { page } = await open(stage.watched.context, stage.page.url());
  await ready(page);
  const told = (): Promise<string[]> => page.evaluate(() => (globalThis as unknown as { told: string[] }).told);
  const hide = (isHidden: boolean): Promise<void> => page.evaluate((value) => { Object.defineProperty(document, "hidden", { value, configurable: true }); }, isHidden);
  const waiting = page.getByRole("button", { name: "1 call waiting" });
  const answer = async (): Promise<void> => {
    await hide(false);
    await waiting.click();
    await page.getByRole("dialog", { name: "Calls that wait" }).getByRole("button", { name: "Reject" }).click();
    await waiting.waitFor({ state: "detached" });
  };
  await hide(true);
  const unwished = evaluates("1 + 2");
  await waiting.waitFor();
  assert.deepEqual(await told(), [], "off until it is wished");
  await answer();
  await unwished;
  await page.keyboard.press("ControlOrMeta+k");
  await page.keyboard.type("Notify of calls");
  await page.keyboard.press("Enter");
  await page.locator(".toast").getByText("Notify of calls that wait: on").waitFor();
  await hide(true);
  const wished = evaluates("3 + 4");
  await waiting.waitFor();
  assert.match((await told()).join(), /^lamp: 1 call waiting for you: /);
  await answer();
  await wished;
  await page.close();
});
