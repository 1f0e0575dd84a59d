// A client that is no person: one call of a tool through `beamtalk mcp`.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { BINARY, type House } from "./house";

const META = { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} };

/** Call a tool; what came of it. */
export function calls(house: House, name: string, args: Record<string, unknown>): Promise<{ isError: boolean; text: string }> {
  const child = spawn(BINARY, ["mcp"], { cwd: house.project, env: house.environment, stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta: META } })}\n`);
  return new Promise((resolve) => {
    createInterface({ input: child.stdout }).once("line", (line) => {
      const { result } = JSON.parse(line) as { result: { isError: boolean; content: { text: string }[] } };
      child.stdin.end();
      resolve({ isError: result.isError, text: result.content[0]?.text ?? "" });
    });
  });
}
