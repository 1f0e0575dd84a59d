// What the whole page knows. Panes meet here and in the routes, never in each other.

import { computed, signal } from "@preact/signals";
import { Client, type Frame, type Phase } from "../wire/client";
import type { ErrorBody } from "../wire/protocol";
import { Tab } from "./tab";

export const phase = signal<Phase>({ is: "connecting" });
export const role = signal("owner");
export const isOwner = computed(() => role.value === "owner");
export const isOnline = computed(() => phase.value.is === "online");
export const sessionId = signal<string | null>(null);
export const workspaceName = signal("workspace");
/** `running`, or why it is not. */
export const node = signal("running");
/** Nothing can be changed: nobody would hear it. */
export const isFrozen = computed(() => !isOnline.value || node.value !== "running");
/** Why the image does not run, in the words of the daemon. */
export const lastError = signal<string | null>(null);
/** Counts the starts of the image that were seen: what was held before is gone. */
export const images = signal(0);
/** A notice of the connection or the image, shown until the time given. */
export const notice = signal<{ text: string; until: number | null; kind: "info" | "warn"; why?: string } | null>(null);
export const status = signal("");
/** Counts up when everything shown has to be asked for again. */
export const epoch = signal(0);
/** The evaluation of this session that runs. */
export const running = signal<{ id: string; since: number } | null>(null);
/** Why nothing can be recorded, if so. */
export const trail = signal<string | null>(null);
export const pending = signal(0);
export const waiting = signal(0);
export const diskChanged = signal<string[]>([]);
export const now = signal(Date.now());

/** Text to be put where the caret of the Workspace is. */
export const insertion = signal<string | null>(null);
/** A class whose tests are to be run by the pane of tests. */
export const testing = signal<string | null>(null);
/** An actor class of the project, for an example. */
export const actorClass = signal<string | null>(null);
/** What listens to frames of kept requests. */
export const frameListeners = new Set<(frame: Frame) => void>();

function address(): string {
  return `${location.protocol === "https:" ? "wss:" : "ws:"}//${location.host}/ws`;
}

const NEW_SESSION = `A session is kept for a while after its tab has gone; then its variables and references are dropped, and what it
printed too. That time was over, the daemon was started again, or somebody closed the session.

Classes, actors, changes and the texts in the Workspace do not belong to a session and are all there. Evaluate again what
you still need.`;

const SEEN = "seen";

/** How far this tab has shown its session, for the page that comes after it; a new tab has shown nothing. */
function noteSeen(): void {
  if (client.sessionId !== null) sessionStorage.setItem(SEEN, `${client.sessionId} ${client.last}`);
}

function seenBefore(session: string): number {
  const [of, number] = (sessionStorage.getItem(SEEN) ?? "").split(" ");
  return of === session ? Number(number) : 0;
}

export let client: Client;

export async function start(): Promise<void> {
  const tab = new Tab({ storage: sessionStorage, locks: navigator.locks });
  addEventListener("pagehide", () => tab.leave());
  // A page that a browser kept and shows again has let go of its session.
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  const wish = await tab.claim();
  let isFirst = true;
  client = new Client(
    address(),
    {
      phase: (next) => {
        phase.value = next;
      },
      session: (id, resumed, as) => {
        role.value = as;
        const isNew = !isFirst && !resumed;
        sessionId.value = id;
        tab.given(id);
        if (isNew) say("Reconnected with a new session: variables of the old one are gone.", "warn", null, NEW_SESSION);
        if (!resumed) running.value = null;
        isFirst = false;
        epoch.value += 1;
        if (resumed) void findRunning(id);
      },
      frame: (frame) => {
        for (const listener of frameListeners) listener(frame);
      },
      replayed: (lines) => {
        if (lines > 0) say(`Reconnected. ${lines.toLocaleString("en-US")} ${lines === 1 ? "line" : "lines"} arrived meanwhile.`, "info", 5000);
      },
      now: () => Date.now(),
    },
    wish,
    seenBefore,
  );
  addEventListener("pagehide", noteSeen);
  document.addEventListener("visibilitychange", () => { if (document.hidden) noteSeen(); });
  client.on("workspace", (event) => {
    if (event.event === "node_exited") node.value = "restarting";
    if (event.event === "node_started") {
      node.value = "running";
      lastError.value = null;
      notice.value = null;
      images.value += 1;
      epoch.value += 1;
    }
    if (event.event === "disk_changed") diskChanged.value = event.data.files;
    if (event.event === "changes_waiting") waiting.value = event.data.count;
    if (event.event === "node_exited") {
      running.value = null;
      const unflushed = pending.value === 0 ? "" : `, ${pending.value} unflushed ${pending.value === 1 ? "change is" : "changes are"} installed again`;
      say(`The image is restarting; actors and variables are gone. Classes are loaded again from disk${unflushed}.`, "warn", null);
    }
  });
  client.connect();
  addEventListener("online", () => client.hurry());
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) client.hurry();
  });
  // Seconds that are shown count only while somebody looks.
  setInterval(() => {
    if (document.hidden) return;
    now.value = Date.now();
    // One that ended too often is not started again, and nobody says so.
    if (node.value !== "running" && isOnline.value) {
      client.request("health", {}).then((health) => { if (health.node === "failed") { node.value = "failed"; lastError.value = health.last_error; notice.value = null; } }, () => undefined);
    }
  }, 1000);
}

/** An evaluation that has said nothing yet is known to the daemon only. */
async function findRunning(id: string): Promise<void> {
  const { sessions } = await client.request("sessions", {}).catch(() => ({ sessions: [] }));
  if (running.value === null && sessions.some((one) => one.id === id && one.busy)) running.value = { id: "", since: Date.now() };
}

export function say(text: string, kind: "info" | "warn", forMs: number | null, why?: string): void {
  const next = { text, kind, until: forMs === null ? null : Date.now() + forMs, ...(why === undefined ? {} : { why }) };
  notice.value = next;
  if (forMs !== null) setTimeout(() => { if (notice.value === next) notice.value = null; }, forMs);
}

/** What a failed request says, for showing where it happened. */
export function fault(cause: unknown): ErrorBody {
  if (cause !== null && typeof cause === "object" && "body" in cause) return cause.body as ErrorBody;
  return { kind: "internal_error", message: cause instanceof Error ? cause.message : String(cause) };
}
