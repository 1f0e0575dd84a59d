import assert from "node:assert/strict";
import test from "node:test";
import { Client, Lost, OpError, type Frame, type Phase } from "./client";

/** A server in the same process: what was sent, and what is to be heard. */
class FakeSocket {
  static last: FakeSocket;
  sent: Record<string, unknown>[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  constructor(readonly url: string) {
    FakeSocket.last = this;
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  close(): void {
    this.onclose?.({ code: 1000 });
  }
  say(...messages: Record<string, unknown>[]): void {
    for (const message of messages) this.onmessage?.({ data: JSON.stringify(message) });
  }
  welcome(session: string, resumed: boolean, last = 0): void {
    this.onopen?.();
    this.say({ type: "auth_ok", role: "owner", server: "beamtalk/1" }, { op: "session-started", session, resumed, last });
  }
  asked(op: string): Record<string, unknown> {
    return this.sent.filter((one) => one.op === op).at(-1) ?? {};
  }
}

function fake(): { client: Client; phases: Phase[]; frames: Frame[]; replays: number[] } {
  (globalThis as { WebSocket: unknown }).WebSocket = FakeSocket;
  const [phases, frames, replays]: [Phase[], Frame[], number[]] = [[], [], []];
  const client = new Client("ws://x/ws", { phase: (one) => phases.push(one), session: () => undefined, frame: (one) => frames.push(one), replayed: (count) => replays.push(count), now: () => 5 }, { resume: "latest" });
  client.connect();
  return { client, phases, frames, replays };
}

test("answers find their request, refusals are errors", async () => {
  const { client } = fake();
  FakeSocket.last.welcome("s-1", false);
  const good = client.request("health", {});
  const bad = client.request("diff", { seq: 1 });
  const { id } = FakeSocket.last.asked("health");
  FakeSocket.last.say({ id: "stranger", status: ["done"] }, { id, node: "up", status: ["done"] });
  assert.equal((await good).node, "up");
  FakeSocket.last.say({ id: FakeSocket.last.asked("diff").id, status: ["done", "error"], error: { kind: "not_found", message: "no" } });
  await assert.rejects(bad, (error) => error instanceof OpError && error.body.kind === "not_found");
});

test("a lost connection fails what was open and comes back with the session", async () => {
  const { client, phases } = fake();
  FakeSocket.last.welcome("s-1", false);
  const open = client.request("health", {});
  FakeSocket.last.onclose?.({ code: 1006 });
  await assert.rejects(open, Lost);
  assert.deepEqual(phases.at(-1), { is: "lost", retryAt: 505 });
  client.hurry();
  FakeSocket.last.onopen?.();
  assert.equal(FakeSocket.last.sent[0]?.resume, "s-1");
  FakeSocket.last.onclose?.({ code: 1006 });
  assert.deepEqual(phases.at(-1), { is: "lost", retryAt: 1005 });
  client.leave();
});

test("replayed and live frames come in order, none twice", async () => {
  const { client, frames, replays } = fake();
  FakeSocket.last.welcome("s-1", true);
  const { id } = FakeSocket.last.asked("replay");
  FakeSocket.last.say({ id: "old-1", n: 3, out: "c\n" }, { id: "old-1", n: 1, replayed: true, about: "x", out: "a\nb\n" }, { id: "old-1", n: 2, replayed: true, out: "b" }, { id: "old-1", n: 3, replayed: true, out: "c\n" }, { id, last: 3, lost: 0, status: ["done"] });
  await new Promise((done) => setTimeout(done, 0));
  assert.deepEqual(frames.map((frame) => frame.out), ["a\nb\n", "b", "c\n"]);
  assert.deepEqual(replays, [3]);
  FakeSocket.last.say({ id: "old-1", n: 4, out: "d" }, { id: "old-1", n: 4, out: "d" });
  assert.equal(frames.length, 4);
  client.leave();
});

/** How far a request got before the connection went, and what the client comes back to. */
const STAGES = ["not arrived", "runs", "done", "heard"] as const;
const COMEBACKS = ["the session", "another image", "another session", "lost twice"] as const;

for (const stage of STAGES) {
  for (const comeback of COMEBACKS) {
    test(`every request is answered once: ${stage}, then ${comeback}`, async () => {
      const { client, frames } = fake();
      FakeSocket.last.welcome("s-1", false);
      const outcome = client.request("eval", { code: "1" }).then(() => "answered", () => "lost");
      const id = String(FakeSocket.last.asked("eval").id);
      const done = { id, n: 1, status: ["done"], text: "1" };
      if (stage === "heard") FakeSocket.last.say(done);
      FakeSocket.last.onclose?.({ code: 1006 });
      assert.equal(await outcome, stage === "heard" ? "answered" : "lost");
      const kept = stage === "done" || stage === "heard";
      const come = (): void => {
        client.hurry();
        FakeSocket.last.welcome(comeback === "another session" ? "s-2" : "s-1", comeback === "the session" || comeback === "lost twice", kept && comeback !== "another session" ? 1 : 0);
      };
      come();
      if (comeback === "lost twice") {
        FakeSocket.last.onclose?.({ code: 1006 });
        await settled();
        come();
      }
      const { id: asked, after } = FakeSocket.last.asked("replay");
      if (asked !== undefined) {
        if (kept && Number(after) < 1) FakeSocket.last.say({ ...done, replayed: true });
        FakeSocket.last.say({ id: asked, status: ["done"], last: kept ? 1 : 0, lost: 0, open: stage === "runs" ? [id] : [] });
      }
      await settled();
      const ends = (): Frame[] => frames.filter((frame) => frame.id === id && frame.status?.includes("done") === true);
      if (stage === "runs" && comeback !== "another session") {
        assert.equal(ends().length, 0, "it runs");
        FakeSocket.last.say(done);
      }
      assert.equal(ends().length, 1);
      assert.equal(ends()[0]?.error?.kind, stage === "heard" || (stage !== "not arrived" && comeback !== "another session") ? undefined : "connection_lost");
      client.leave();
    });
  }
}

test("what was asked without a connection is told when there is one", async () => {
  const { client, frames } = fake();
  FakeSocket.last.welcome("s-1", false);
  FakeSocket.last.onclose?.({ code: 1006 });
  const id = client.nextId();
  await assert.rejects(client.request("eval", { code: "1" }), Lost);
  client.hurry();
  FakeSocket.last.welcome("s-1", true);
  FakeSocket.last.say({ id: FakeSocket.last.asked("replay").id, status: ["done"], last: 0, lost: 0, open: [] });
  await settled();
  assert.deepEqual(frames.map((frame) => [frame.id, frame.error?.kind]), [[id, "connection_lost"]]);
  client.leave();
});

const text = (seq: number): Record<string, unknown> => ({ type: "push", channel: "transcript", seq, event: "text", data: { text: `${seq}`, for: null } });
const dropped = { type: "push", channel: "transcript", event: "dropped", data: { count: 3 } };
const settled = (): Promise<unknown> => new Promise((done) => setTimeout(done, 0));
const agreed = (): Record<string, unknown> => ({ id: FakeSocket.last.asked("subscribe").id, status: ["done"], channels: ["transcript"] });

function listening(since: number | null = null): { client: Client; heard: string[]; end: () => void } {
  const { client } = fake();
  FakeSocket.last.welcome("s-1", false);
  const heard: string[] = [];
  const end = client.on("transcript", (event) => {
    if (event.event === "text") heard.push(event.data.text);
    if (event.event === "gap") heard.push(`${event.data.from}-${event.data.to}`);
  }, {}, since);
  return { client, heard, end };
}

test("events are passed on once, and in order also when missed ones come after newer ones", async () => {
  const { heard, end } = listening();
  FakeSocket.last.say(agreed(), text(1), text(2), text(2));
  await settled();
  assert.deepEqual(heard, ["1", "2"]);
  FakeSocket.last.say(dropped);
  assert.deepEqual(FakeSocket.last.asked("subscribe").since, { transcript: 2 });
  FakeSocket.last.say(text(6), text(3), text(4), text(5), text(6), text(7));
  assert.deepEqual(heard, ["1", "2"], "what is newer waits");
  FakeSocket.last.say(agreed());
  await settled();
  FakeSocket.last.say(text(8));
  assert.deepEqual(heard, ["1", "2", "3", "4", "5", "6", "7", "8"]);
  end();
  assert.deepEqual(FakeSocket.last.asked("unsubscribe").channels, ["transcript"]);
});

test("events that share a frame are heard one by one", async () => {
  const { heard } = listening();
  assert.equal(FakeSocket.last.sent[0]?.gather, true, "it is asked for");
  FakeSocket.last.say(agreed());
  await settled();
  FakeSocket.last.onmessage?.({ data: JSON.stringify([text(1), text(2)]) });
  FakeSocket.last.say(text(2), text(3));
  assert.deepEqual(heard, ["1", "2", "3"]);
});

test("what is known already is where listening begins, and a gap is told where it is", async () => {
  const { heard } = listening(5);
  assert.deepEqual(FakeSocket.last.asked("subscribe").since, { transcript: 5 });
  FakeSocket.last.say({ type: "push", channel: "transcript", event: "gap", data: { from: 6, to: 9 } }, text(10), text(11), agreed());
  await settled();
  assert.deepEqual(heard, ["6-9", "10", "11"]);
});

test("who is too slow again, or cut off, goes on from where it was whole", async () => {
  const { client, heard } = listening(0);
  FakeSocket.last.say(text(1), dropped, text(2), text(5), agreed());
  await settled();
  assert.deepEqual(heard, ["1", "2"]);
  assert.deepEqual(FakeSocket.last.asked("subscribe").since, { transcript: 2 });
  FakeSocket.last.say(text(3), text(5));
  FakeSocket.last.onclose?.({ code: 1006 });
  await settled();
  assert.deepEqual(heard, ["1", "2", "3"]);
  client.hurry();
  FakeSocket.last.welcome("s-1", true);
  assert.deepEqual(FakeSocket.last.asked("subscribe").since, { transcript: 3 });
  client.leave();
});

test("what is over stays over", () => {
  const ends: [number, string][] = [[4001, "logged-out"], [1008, "logged-out"], [4002, "taken-over"]];
  for (const [code, expected] of ends) {
    const { client, phases } = fake();
    FakeSocket.last.welcome("s-1", false);
    FakeSocket.last.onclose?.({ code });
    assert.equal(phases.at(-1)?.is, expected);
    const socket = FakeSocket.last;
    client.hurry();
    assert.equal(FakeSocket.last, socket, "no further connection");
  }
  const { phases } = fake();
  FakeSocket.last.welcome("s-1", false);
  FakeSocket.last.say({ type: "push", channel: "workspace", event: "stopping", data: { reason: "stop" } });
  FakeSocket.last.onclose?.({ code: 1001 });
  assert.deepEqual(phases.at(-1), { is: "stopped", at: 5 });
});

test("too much is refused before it is sent", async () => {
  const { client } = fake();
  FakeSocket.last.welcome("s-1", false);
  const count = FakeSocket.last.sent.length;
  await assert.rejects(client.request("eval", { code: "x".repeat(1024 * 1024 + 1) }), (error) => error instanceof OpError && error.body.kind === "message_too_large");
  assert.equal(FakeSocket.last.sent.length, count);
});

test("two who want different things of one channel both get them, after a reconnect too", () => {
  const { client } = fake();
  FakeSocket.last.welcome("s-1", false);
  const heard: string[] = [];
  client.on("object", () => heard.push("one"), { actor: "0.1.0" });
  client.on("object", () => heard.push("two"), { actor: "0.2.0" });
  client.on("object", () => heard.push("three"), { actor: "0.1.0" });
  const wanted = (): unknown[] => FakeSocket.last.sent.filter((one) => one.op === "subscribe").map((one) => one.actor).sort();
  assert.deepEqual(wanted(), ["0.1.0", "0.2.0"]);
  FakeSocket.last.onclose?.({ code: 1006 });
  client.hurry();
  FakeSocket.last.welcome("s-1", true);
  assert.deepEqual(wanted(), ["0.1.0", "0.2.0"]);
  FakeSocket.last.say({ type: "push", channel: "object", event: "changed", data: { actor: "0.1.0", fields: [] } });
  assert.deepEqual(heard, ["one", "two", "three"]);
  client.leave();
});
