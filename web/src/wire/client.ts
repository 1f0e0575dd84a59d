// The connection to the daemon: requests, kept output, events, and coming back after it was lost.
//
// No DOM here. Everything the page learns goes through `Hooks`; whoever asked gets a promise, and every frame of a
// kept request also goes to `Hooks.frame`, because its answer may arrive in a later page than the one that asked.

import type { Channel, ErrorBody, Head, Operations, push } from "./protocol";

export type Phase =
  | { is: "connecting" }
  | { is: "online" }
  | { is: "lost"; retryAt: number }
  | { is: "logged-out" }
  | { is: "taken-over" }
  | { is: "stopped"; at: number }
  | { is: "other-version" };

/** A message that belongs to a request. */
export type Frame = Head & Record<string, unknown>;
export type Push = push & { seq?: number };

export interface Hooks {
  phase(phase: Phase): void;
  /** The session that was given, and whether it is the one that was asked for. */
  session(id: string, resumed: boolean, role: string): void;
  /** A frame of a request that changes something, in order, none twice. */
  frame(frame: Frame): void;
  /** What was missed has been read again: so many lines of output. */
  replayed(lines: number, lost: number): void;
  now(): number;
}

export interface More {
  about?: string;
  out?: (text: string) => void;
  session?: string;
  timeout_ms?: number;
}

/** A refusal, in the words of the daemon. */
export class OpError extends Error {
  constructor(readonly body: ErrorBody) {
    super(body.message);
  }
}

/** The answer will never come: the connection ended first. */
export class Lost extends Error {
  constructor() {
    super("the connection was lost before the answer came");
  }
}

interface Open {
  resolve: (frame: Frame) => void;
  reject: (fault: Error) => void;
  out?: (text: string) => void;
}

type Listener = (event: Push) => void;
interface Subscription {
  listeners: Set<Listener>;
  /** What is wanted of the channel: which actors, which level. */
  wishes: Record<string, string>[];
  /** The number of the last event that was passed on; null while none is known. */
  seq: number | null;
  /** Events that arrive while missed ones are asked for, and whether some of those were dropped in turn. */
  held: Push[] | null;
  isHoled: boolean;
  turn: number;
}

/** Where an event stands in its channel. */
function numberOf(event: Push): number {
  return event.event === "gap" ? Number((event.data as { from: number }).from) : (event.seq ?? 0);
}

const RETRIES = [500, 1000, 2000, 4000, 8000];
/** Close codes of the daemon. */
const CREDENTIALS_GONE = 4001;
const TAKEN_OVER = 4002;
const REFUSED = 1008;

export class Client {
  private socket: WebSocket | null = null;
  private readonly open = new Map<string, Open>();
  private readonly channels = new Map<Channel, Subscription>();
  private readonly prefix = Array.from(crypto.getRandomValues(new Uint8Array(6)), (one) => (one % 36).toString(36)).join("");
  private next = 1;
  private attempts = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private over = false;
  private stoppedAt: number | null = null;
  /** The greatest number of a kept frame that was passed on. */
  last = 0;
  /** Lines in the frames that were passed on and no page has shown before. */
  private lines = 0;
  /** Requests of connections that ended, whose fate is not known. */
  private readonly unsure = new Set<string>();
  /** Frames that arrived while older ones are being replayed. */
  private early: Frame[] | null = null;
  /** What the daemon calls itself. */
  server: string | null = null;
  private role = "owner";
  sessionId: string | null = null;
  isOnline = false;

  constructor(
    private readonly url: string,
    private readonly hooks: Hooks,
    /** The session to come back to, or `latest` of those that no other page has. */
    private wish: { resume: string; taken?: string[] },
    /** The last frame of a session that an earlier page has shown. */
    private readonly seen: (session: string) => number = () => 0,
  ) {}

  connect(): void {
    if (this.over || this.socket !== null) return;
    clearTimeout(this.timer);
    const socket = new WebSocket(this.url, ["beamtalk.v1"]);
    this.socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ type: "hello", client: "browser", protocol: "1.1", keep: true, gather: true, ...this.wish }));
    };
    socket.onmessage = (message) => {
      const heard = JSON.parse(String(message.data)) as Record<string, unknown> | Record<string, unknown>[];
      // Events that come fast share a frame: each of thousands would be something more to collect.
      for (const one of Array.isArray(heard) ? heard : [heard]) this.hear(one);
    };
    socket.onclose = (event) => {
      if (this.socket === socket) this.closed(event.code);
    };
  }

  /** Ask at once instead of at the end of the wait. */
  hurry(): void {
    if (this.socket === null) this.connect();
  }

  /** Come back no more. */
  leave(): void {
    this.over = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** Leave for good, because something else than the network ended it. */
  private end(phase: Phase): void {
    this.over = true;
    clearTimeout(this.timer);
    this.hooks.phase(phase);
  }

  private closed(code: number): void {
    this.socket = null;
    this.isOnline = false;
    this.early = null;
    for (const [id, open] of this.open) {
      this.unsure.add(id);
      open.reject(new Lost());
    }
    this.open.clear();
    if (this.over) return;
    if (code === CREDENTIALS_GONE || code === REFUSED) return this.end({ is: "logged-out" });
    if (code === TAKEN_OVER) return this.end({ is: "taken-over" });
    if (this.stoppedAt !== null) return this.end({ is: "stopped", at: this.stoppedAt });
    const wait = RETRIES[Math.min(this.attempts, RETRIES.length - 1)] ?? 8000;
    this.attempts += 1;
    this.timer = setTimeout(() => this.connect(), wait);
    this.hooks.phase({ is: "lost", retryAt: this.hooks.now() + wait });
  }

  private hear(message: Record<string, unknown>): void {
    if (message.op === "auth-required") {
      this.end({ is: "logged-out" });
      this.socket?.close();
    } else if (message.type === "auth_ok") {
      this.role = String(message.role);
      if (this.server !== null && this.server !== message.server) {
        this.end({ is: "other-version" });
        this.socket?.close();
      }
      this.server = String(message.server);
    } else if (message.op === "session-started") {
      this.started(String(message.session), message.resumed === true, Number(message.last ?? 0));
    } else if (message.type === "push") {
      this.pushed(message as unknown as Push);
    } else if (typeof message.id === "string") {
      this.received(message as Frame);
    }
  }

  /** A session that goes on has kept something, also when it did not go on in the same image. */
  private started(session: string, resumed: boolean, last: number): void {
    const isOther = this.sessionId !== null && this.sessionId !== session;
    this.attempts = 0;
    this.isOnline = true;
    this.sessionId = session;
    this.wish = { resume: session };
    if (isOther) this.last = 0;
    this.hooks.session(session, resumed, this.role);
    for (const [channel, subscription] of this.channels) void this.listen(channel, subscription);
    if (isOther) this.settle(new Set(), "the session ended before the answer came");
    if (resumed || last > 0 || this.unsure.size > 0) void this.replay();
    this.hooks.phase({ is: "online" });
  }

  /** Read again what was kept while nobody listened. */
  private async replay(): Promise<void> {
    this.early = [];
    const [before, lines] = [this.last, this.lines];
    const answer = await this.request("replay", { after: before }).catch(() => null);
    const { early } = this;
    // The connection went again: the next one asks again.
    if (early === null) return;
    this.early = null;
    for (const frame of early.sort((one, two) => Number(one.n) - Number(two.n))) this.keep(frame);
    if (answer !== null) this.settle(new Set(answer.open), "the connection was lost before this reached the workspace; it was not done");
    this.hooks.replayed(this.lines - lines, Number(answer?.lost ?? 0));
  }

  /** Of requests that the daemon does not work on and has not answered nothing will be heard any more. */
  private settle(open: ReadonlySet<string>, message: string): void {
    for (const id of this.unsure) {
      if (open.has(id)) continue;
      this.unsure.delete(id);
      this.hooks.frame({ id, status: ["done", "error"], error: { kind: "connection_lost", message } });
    }
  }

  private keep(frame: Frame): void {
    const number = Number(frame.n);
    if (number <= this.last) return;
    this.last = number;
    if (typeof frame.out === "string" && number > this.seen(this.sessionId ?? "")) this.lines += frame.out.split("\n").length - 1;
    this.hooks.frame(frame);
  }

  private received(frame: Frame): void {
    const isDone = frame.status?.includes("done") === true;
    const open = this.open.get(frame.id ?? "");
    if (isDone) this.unsure.delete(frame.id ?? "");
    if (typeof frame.n === "number") {
      if (this.early !== null && frame.replayed !== true) this.early.push(frame);
      else this.keep(frame);
    } else if (open === undefined) {
      return;
    }
    if (open === undefined) return;
    if (typeof frame.out === "string") open.out?.(frame.out);
    if (!isDone) return;
    this.open.delete(frame.id ?? "");
    if (frame.error !== undefined) open.reject(new OpError(frame.error));
    else open.resolve(frame);
  }

  /** The name the next request will have. */
  nextId(): string {
    return `${this.prefix}-${this.next}`;
  }

  request<Name extends keyof Operations>(
    op: Name,
    fields: Operations[Name]["request"],
    more: More = {},
  ): Promise<Operations[Name]["answer"] & Frame> {
    const id = this.nextId();
    this.next += 1;
    const { out, ...sent } = more;
    return new Promise((resolve, reject) => {
      if (this.socket === null || !this.isOnline) {
        this.unsure.add(id);
        return reject(new Lost());
      }
      const text = JSON.stringify({ op, id, ...sent, ...fields });
      if (text.length > 1024 * 1024) {
        return reject(new OpError({ kind: "message_too_large", message: "that is over 1 MiB and was not sent" }));
      }
      this.open.set(id, { resolve: resolve as (frame: Frame) => void, reject, ...(out === undefined ? {} : { out }) });
      this.socket.send(text);
    });
  }

  /** Listen to a channel, after the number of what is known of it already; the answer ends it. */
  on<Name extends Channel>(channel: Name, listener: (event: Extract<Push, { channel: Name }>) => void, more: Record<string, string> = {}, since: number | null = null): () => void {
    let subscription = this.channels.get(channel);
    if (subscription === undefined) {
      subscription = { listeners: new Set(), wishes: [more], seq: since, held: null, isHoled: false, turn: 0 };
      this.channels.set(channel, subscription);
      if (this.isOnline) void this.listen(channel, subscription);
    } else if (!subscription.wishes.some((wish) => JSON.stringify(wish) === JSON.stringify(more))) {
      subscription.wishes.push(more);
      if (this.isOnline) this.request("subscribe", { channels: [channel], ...more }).catch(() => undefined);
    }
    subscription.listeners.add(listener as Listener);
    return () => {
      subscription.listeners.delete(listener as Listener);
      if (subscription.listeners.size > 0 || this.channels.get(channel) !== subscription) return;
      this.channels.delete(channel);
      if (this.isOnline && channel !== "workspace") this.request("unsubscribe", { channels: [channel] }).catch(() => undefined);
    };
  }

  /** Listen, and first get what was missed: until then what arrives may be newer, and waits. */
  private async listen(channel: Channel, subscription: Subscription): Promise<void> {
    const { seq } = subscription;
    const [more = {}, ...others] = subscription.wishes;
    const since = seq === null ? {} : { since: { [channel]: seq } };
    subscription.turn += 1;
    const turn = subscription.turn;
    subscription.held = seq === null ? null : [];
    subscription.isHoled = false;
    for (const other of others) this.request("subscribe", { channels: [channel], ...other }).catch(() => undefined);
    const isWhole = await this.request("subscribe", { channels: [channel], ...more, ...since }).then(() => true, () => false);
    if (turn !== subscription.turn || subscription.held === null) return;
    const { held } = subscription;
    const isHoled = subscription.isHoled || !isWhole;
    subscription.held = null;
    for (const event of held.sort((one, two) => numberOf(one) - numberOf(two))) {
      // Behind a hole everything comes again.
      if (isHoled && numberOf(event) > (subscription.seq ?? 0) + 1) break;
      this.pass(subscription, event);
    }
    if (isHoled && isWhole) void this.listen(channel, subscription);
  }

  private pushed(event: Push): void {
    if (event.channel === "workspace" && event.event === "stopping") this.stoppedAt = this.hooks.now();
    const subscription = this.channels.get(event.channel);
    if (subscription === undefined) return;
    if (event.event === "dropped" && subscription.seq !== null) {
      if (subscription.held === null) void this.listen(event.channel, subscription);
      else subscription.isHoled = true;
    } else if (subscription.held !== null) {
      subscription.held.push(event);
    } else {
      this.pass(subscription, event);
    }
  }

  /** Tell an event to those who listen, unless they have heard it. */
  private pass(subscription: Subscription, event: Push): void {
    if (event.event === "gap") {
      subscription.seq = Math.max(subscription.seq ?? 0, Number((event.data as { to: number }).to));
    } else if (typeof event.seq === "number") {
      if (event.seq <= (subscription.seq ?? 0)) return;
      subscription.seq = event.seq;
    }
    for (const listener of subscription.listeners) listener(event);
  }
}
