// The server as the newer client sees it, which asks for the era first: node modern_client.mjs stdio BINARY | http URL TOKEN
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { exercise, told } from "./exercise.mjs";

const [way, place, secret] = process.argv.slice(2);
const TASKS = "io.modelcontextprotocol/tasks";

/** Connected with what it says it can; `hear` gets every answer as it came. */
async function opened(capabilities, hear) {
  const client = new Client({ name: "modern", version: "1" }, { capabilities, versionNegotiation: { mode: "auto" } });
  const transport = way === "stdio"
    ? new StdioClientTransport({ command: place, args: ["mcp", "--toolsets", "all", "--policy", "full"], env: process.env })
    : new StreamableHTTPClientTransport(new URL(place), { requestInit: { headers: { Authorization: `Bearer ${secret}` } } });
  if (capabilities.elicitation) client.setRequestHandler("elicitation/create", async () => person);
  client.setNotificationHandler("notifications/resources/updated", (message) => told.push(message.params.uri));
  await client.connect(transport);
  const take = transport.onmessage;
  transport.onmessage = (message, extra) => {
    hear(message);
    take(message, extra);
  };
  return client;
}

const person = { action: "decline" };
const client = await opened({ elicitation: { form: {} } }, () => {});
await exercise(client, person, { watch: async (uri) => client.listen({ resourceSubscriptions: [uri] }) });
await client.close();

// Long work as a task. This client refuses what it gets then, but sends the requests of the extension as they must be.
let handed;
const patient = await opened({ extensions: { [TASKS]: {} } }, (message) => {
  if (message.result?.resultType === "task") handed = message.result;
});
const slow = { name: "evaluate", arguments: { code: "(Timer sleep: 3000). 9", session: "new" } };
await assert.rejects(patient.callTool(slow), /task/);
assert.equal(handed.status, "working");
const anything = { "~standard": { version: 1, vendor: "test", validate: (value) => ({ value }) } };
const asked = () => patient.request({ method: "tasks/get", params: { taskId: handed.taskId } }, anything);
let task = await asked();
while (task.status === "working") {
  await pause(200);
  task = await asked();
}
assert.equal(task.status, "completed", JSON.stringify(task));
assert.equal(task.result.structuredContent.value, 9);
await patient.close();
console.log("ok client", way);
process.exit(0);
