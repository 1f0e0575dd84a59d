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
type Subscription = { listeners: Set<Listener>; more: Record<string, string>; seq: number };

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
  private last = 0;
  /** Lines in the frames that were passed on. */
  private lines = 0;
  /** Frames that arrived while older ones are being replayed. */
  private early: Frame[] | null = null;
  private server: string | null = null;
  private role = "owner";
  sessionId: string | null = null;
  isOnline = false;

  constructor(
    private readonly url: string,
    private readonly hooks: Hooks,
    /** The session to come back to, or `latest`. */
    private resume: string,
  ) {}

  connect(): void {
    if (this.over || this.socket !== null) return;
    clearTimeout(this.timer);
    const socket = new WebSocket(this.url, ["beamtalk.v1"]);
    this.socket = socket;
    socket.onopen = () => {
      socket.send(JSON.stringify({ type: "hello", client: "browser", protocol: "1.1", keep: true, resume: this.resume }));
    };
    socket.onmessage = (message) => this.hear(JSON.parse(String(message.data)) as Record<string, unknown>);
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
    for (const open of this.open.values()) open.reject(new Lost());
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
      this.started(String(message.session), message.resumed === true);
    } else if (message.type === "push") {
      this.pushed(message as unknown as Push);
    } else if (typeof message.id === "string") {
      this.received(message as Frame);
    }
  }

  private started(session: string, resumed: boolean): void {
    this.attempts = 0;
    this.isOnline = true;
    this.sessionId = session;
    this.resume = session;
    if (!resumed) this.last = 0;
    this.hooks.session(session, resumed, this.role);
    for (const [channel, subscription] of this.channels) this.listen(channel, subscription);
    if (resumed) void this.replay();
    this.hooks.phase({ is: "online" });
  }

  /** Read again what was kept while nobody listened. */
  private async replay(): Promise<void> {
    this.early = [];
    const [before, lines] = [this.last, this.lines];
    let lost = 0;
    try {
      const answer = await this.request("replay" as never, { after: before } as never);
      lost = Number((answer as Record<string, unknown>).lost ?? 0);
    } catch {
      // The connection went again, or the daemon keeps nothing; what came early still counts.
    }
    const early = this.early ?? [];
    this.early = null;
    for (const frame of early.sort((one, two) => Number(one.n) - Number(two.n))) this.keep(frame);
    this.hooks.replayed(this.lines - lines, lost);
  }

  private keep(frame: Frame): void {
    const number = Number(frame.n);
    if (number <= this.last) return;
    this.last = number;
    if (typeof frame.out === "string") this.lines += frame.out.split("\n").length - 1;
    this.hooks.frame(frame);
  }

  private received(frame: Frame): void {
    const isDone = frame.status?.includes("done") === true;
    const open = this.open.get(frame.id ?? "");
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
      if (this.socket === null || !this.isOnline) return reject(new Lost());
      const text = JSON.stringify({ op, id, ...sent, ...fields });
      if (text.length > 1024 * 1024) {
        return reject(new OpError({ kind: "message_too_large", message: "that is over 1 MiB and was not sent" }));
      }
      this.open.set(id, { resolve: resolve as (frame: Frame) => void, reject, ...(out === undefined ? {} : { out }) });
      this.socket.send(text);
    });
  }

  /** Listen to a channel; the answer ends it. */
  on<Name extends Channel>(channel: Name, listener: (event: Extract<Push, { channel: Name }>) => void, more: Record<string, string> = {}): () => void {
    let subscription = this.channels.get(channel);
    if (subscription === undefined) {
      subscription = { listeners: new Set(), more, seq: 0 };
      this.channels.set(channel, subscription);
      if (this.isOnline) this.listen(channel, subscription);
    }
    subscription.listeners.add(listener as Listener);
    return () => {
      subscription.listeners.delete(listener as Listener);
      if (subscription.listeners.size > 0 || this.channels.get(channel) !== subscription) return;
      this.channels.delete(channel);
      if (this.isOnline && channel !== "workspace") this.request("unsubscribe", { channels: [channel] }).catch(() => undefined);
    };
  }

  private listen(channel: Channel, { more, seq }: Subscription): void {
    const since = seq > 0 ? { since: { [channel]: seq } } : {};
    this.request("subscribe", { channels: [channel], ...more, ...since }).catch(() => undefined);
  }

  private pushed(event: Push): void {
    if (event.channel === "workspace" && event.event === "stopping") this.stoppedAt = this.hooks.now();
    const subscription = this.channels.get(event.channel);
    if (subscription === undefined) return;
    if (typeof event.seq === "number") {
      // Sent twice when it was both kept and on its way.
      if (event.seq <= subscription.seq) return;
      subscription.seq = event.seq;
    }
    if (event.event === "dropped" && subscription.seq > 0) return this.listen(event.channel, subscription);
    for (const listener of subscription.listeners) listener(event);
  }
}
