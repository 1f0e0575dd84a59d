// What each client does with the server.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** Names of resources that changed. */
export const told = [];

/** What each tool that reads is called with. */
const READING = JSON.parse(readFileSync(new URL("reading.json", import.meta.url), "utf8"));

async function until(found, what) {
  for (let turn = 0; turn < 200; turn++) {
    if (await found()) return;
    await pause(50);
  }
  assert.fail(`in vain: ${what}`);
}

export async function exercise(client, person, { watch, isOld }) {
  const call = (name, given, options) => client.callTool({ name, arguments: given }, ...(isOld ? [undefined, options] : [options]));
  const tools = (await client.listTools()).tools;
  assert.ok(tools.some((tool) => tool.name === "evaluate" && tool.outputSchema));
  assert.ok((await client.listPrompts()).prompts.length > 0);
  assert.ok((await client.listResources()).resources.some((one) => one.uri === "beamtalk://class/Lamp"));
  const session = (await call("evaluate", { code: "x := 6", session: "new" })).structuredContent.session;
  // Every tool that reads; the client checks what it gets against the schema.
  for (const { name } of tools.filter((tool) => tool.annotations.readOnlyHint)) {
    const given = JSON.stringify(READING[name]).replace("$SESSION", session).replace("$AGENT", process.env.AGENT);
    const result = await call(name, JSON.parse(given));
    assert.ok(!result.isError, `${name}: ${JSON.stringify(result.content)}`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent, name);
  }
  await call("evaluate", { code: "x := x + 1", session });
  assert.equal((await call("evaluate", { code: "x * 6", session })).structuredContent.value, 42);

  const declined = await call("unload", { class: "Nut" });
  assert.ok(declined.isError && declined.content[0].text.includes("declined"), JSON.stringify(declined));
  Object.assign(person, { action: "accept", content: { approve: true } });
  const removed = await call("unload", { class: "Nut" });
  assert.ok(!removed.isError || removed.content[0].text.includes("class_not_found"), JSON.stringify(removed));

  const steps = [];
  const slow = await call("evaluate", { code: "(Timer sleep: 2500). 9", session }, { onprogress: (step) => steps.push(step.progress) });
  assert.equal(slow.structuredContent.value, 9);
  assert.ok(steps.length > 0, "no progress");

  const stop = new AbortController();
  const forever = call("evaluate", { code: "[true] whileTrue: []", timeout_ms: 60000, session }, { signal: stop.signal });
  await pause(500);
  stop.abort();
  await assert.rejects(forever);
  await until(async () => !(await call("evaluate", { code: "x", session })).isError, "the evaluation still runs");

  const uri = "beamtalk://class/Lamp";
  await watch(uri);
  assert.ok(!(await call("save_method", { class: "Lamp", selector: "last", source: "last => 8" })).isError);
  await until(() => told.includes(uri), "no update");
  // What is too long is refused at once, not when the client's patience ends.
  await assert.rejects(call("evaluate", { code: "x".repeat(2 << 20) }, { timeout: 30000 }), (error) => !/timed out/i.test(String(error)));
  assert.equal((await call("describe", {})).structuredContent.policy, "full");
}
