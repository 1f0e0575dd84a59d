// The server as the client of the old protocol sees it: node legacy_client.mjs stdio BINARY | http URL TOKEN
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { exercise, told } from "./exercise.mjs";

const [way, place, secret] = process.argv.slice(2);
const client = new Client({ name: "legacy", version: "1" }, { capabilities: { elicitation: {} } });
const person = { action: "decline" };
client.setRequestHandler(ElicitRequestSchema, async () => person);
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (message) => told.push(message.params.uri));
const transport = way === "stdio"
  ? new StdioClientTransport({ command: place, args: ["mcp", "--toolsets", "all", "--policy", "full"], env: process.env })
  : new StreamableHTTPClientTransport(new URL(place), { requestInit: { headers: { Authorization: `Bearer ${secret}` } } });
await client.connect(transport);
await exercise(client, person, {
  watch: async (uri) => client.subscribeResource({ uri }),
  isOld: true,
});
await client.close();
console.log("ok sdk", way);
process.exit(0);
