// The server as the newer client sees it, which asks for the era first: node modern_client.mjs stdio BINARY | http URL TOKEN
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { exercise, told } from "./exercise.mjs";

const [way, place, secret] = process.argv.slice(2);
const client = new Client(
  { name: "modern", version: "1" },
  { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "auto" } },
);
const person = { action: "decline" };
client.setRequestHandler("elicitation/create", async () => person);
client.setNotificationHandler("notifications/resources/updated", (message) => told.push(message.params.uri));
const transport = way === "stdio"
  ? new StdioClientTransport({ command: place, args: ["mcp", "--toolsets", "all", "--policy", "full"], env: process.env })
  : new StreamableHTTPClientTransport(new URL(place), { requestInit: { headers: { Authorization: `Bearer ${secret}` } } });
await client.connect(transport);
await exercise(client, person, { watch: async (uri) => client.listen({ resourceSubscriptions: [uri] }) });
await client.close();
console.log("ok client", way);
process.exit(0);
