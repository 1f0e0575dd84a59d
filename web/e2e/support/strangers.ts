// Other servers the same browser visits: they keep what was asked of them, with its headers.

import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";

export interface Stranger {
  port: number;
  asked: { path: string; headers: IncomingHttpHeaders }[];
  close: () => Promise<void>;
}

/** A server with these pages; anything else is empty. */
export async function stranger(pages: Record<string, { type: string; text: string }>, port = 0): Promise<Stranger> {
  const asked: Stranger["asked"] = [];
  const server: Server = createServer((request, answer) => {
    asked.push({ path: request.url ?? "", headers: request.headers });
    const page = pages[(request.url ?? "").split("?")[0] ?? ""];
    answer.writeHead(200, { "content-type": page?.type ?? "text/plain" });
    answer.end(page?.text ?? "");
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    close: () => new Promise((resolve) => {
      server.closeAllConnections();
      server.close(() => resolve());
    }),
  };
}
