// The protocol by hand, over a socket of the page's own login.

import type { Page } from "playwright-core";

export interface Answer {
  status?: string[];
  error?: { kind: string; message: string };
  [field: string]: unknown;
}

/** Send requests one after another and answer what came back for each. */
export function byHand(page: Page, requests: Record<string, unknown>[]): Promise<Answer[]> {
  return page.evaluate((all) => new Promise<Answer[]>((resolve, reject) => {
    const socket = new WebSocket(`${location.origin.replace("http", "ws")}/ws`, ["beamtalk.v1"]);
    const answers: Answer[] = [];
    const next = (): void => {
      const request = all[answers.length];
      if (request !== undefined) return socket.send(JSON.stringify({ ...request, id: `h${answers.length}` }));
      socket.close();
      resolve(answers);
    };
    socket.onopen = () => socket.send(JSON.stringify({ type: "hello", client: "browser", protocol: "1.1" }));
    socket.onclose = ({ code }) => reject(new Error(`closed with ${code}`));
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(String(data)) as Answer & { op?: string; id?: string };
      if (message.op === "session-started") next();
      if (message.id !== `h${answers.length}` || message.status?.includes("done") !== true) return;
      answers.push(message);
      next();
    };
  }), requests);
}
