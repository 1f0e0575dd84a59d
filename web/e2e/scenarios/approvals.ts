// Calls of AI clients that wait: shown to the owner as they come, answered for exactly what was shown, hidden from observers.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { BINARY } from "../support/house";
import { visit } from "../support/browser";
import { Stage } from "../support/stage";

const META = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };
// The project holds everything that runs.
const stage = Stage.of({ "beamtalk.toml": '[package]\nname = "lamp"\nversion = "0.1.0"\n\n[mcp]\napproval = "execute"\n' });

/** A client that evaluates something; what came of it. */
function evaluates(code: string): Promise<{ isError: boolean; text: string }> {
  const child = spawn(BINARY, ["mcp"], { cwd: stage.house.project, env: stage.house.environment, stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "evaluate", arguments: { code }, _meta: META } })}\n`);
  return new Promise((resolve) => {
    createInterface({ input: child.stdout }).once("line", (line) => {
      const { result } = JSON.parse(line) as { result: { isError: boolean; content: { text: string }[] } };
      child.stdin.end();
      resolve({ isError: result.isError, text: result.content[0]?.text ?? "" });
    });
  });
}

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
