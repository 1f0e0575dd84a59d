// The workspace in a browser: its frame, its keys, and how it begins.

import { render, type JSX } from "preact";
import { effect, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { focused, actionsOf, isTyping, keyText, sheetOf, type Action } from "./kernel/actions";
import { keep, leave, readDesk, sendAll, watchDesk } from "./kernel/desk";
import type { PaneId } from "./kernel/layout";
import { alarm, page, toast } from "./kernel/notices";
import { startRecent } from "./kernel/recent";
import { place, startRoutes, wanted } from "./kernel/routes";
import { SWITCHES, change, flip, readSettings, settings } from "./kernel/settings";
import { client, diskChanged, epoch, fault, isFrozen, isOnline, isOwner, node, notice, now, pending, phase, role, running, start, status, trail, waiting, workspaceName } from "./kernel/store";
import { clock, count } from "./kernel/text";
import { ApprovalsDialog, Waiting, areApprovalsShown, readApprovals, watchApprovals } from "./shell/approvals";
import { Dialogs, areKeysShown } from "./shell/dialogs";
import { Dock, Pane, focusPane, full, layout, layoutName, layoutText, menuOf, nextPane, openLastLayout, openLayout, reveal } from "./shell/dock";
import { Palette, isPaletteOpen, openPalette, watchSymbols } from "./shell/palette";
import { LETTERS, TITLES } from "./shell/panes";

const isReady = signal(false);
const isPhone = signal(matchMedia("(max-width: 480px)").matches);
matchMedia("(max-width: 480px)").addEventListener("change", (event) => { isPhone.value = event.matches; });
const phonePane = signal<PaneId>("workspace");

function interrupt(): void {
  if (running.value === null) return;
  client.request("interrupt", {}).catch((cause: unknown) => { status.value = fault(cause).message; });
}

function loadFromDisk(): void {
  client.request("load-project", {}).then(
    (answer) => { diskChanged.value = []; toast(answer.summary ?? `${count(answer.classes.length, "class")} loaded`); },
    (cause: unknown) => { status.value = fault(cause).message; },
  );
}

const THEMES = { system: "light", light: "dark", dark: "system" } as const;

const ACTIONS: Action[] = [
  { title: "Interrupt the evaluation", key: "Mod-.", isChange: true, run: interrupt },
  { title: "Next pane", key: "F6", run: () => nextPane(1) },
  { title: "Previous pane", key: "Shift-F6", run: () => nextPane(-1) },
  { title: "Keys", key: "?", run: () => { areKeysShown.value = true; } },
  { title: "Theme: system", run: () => change({ theme: "system" }) },
  { title: "Theme: light", run: () => change({ theme: "light" }) },
  { title: "Theme: dark", run: () => change({ theme: "dark" }) },
  ...(Object.entries(SWITCHES) as [keyof typeof SWITCHES, string][]).map(([name, title]): Action => ({ title: `${title}: switch`, run: () => void flip(name).then(toast) })),
  { title: "Differences: side by side or in one column", run: () => change({ diff: settings.value.diff === "split" ? "unified" : "split" }) },
  { title: "Reset layout", run: () => openLayout(layoutName.value, true) },
  { title: "Load changed files from disk", isChange: true, run: loadFromDisk },
  { title: "Calls that wait", isChange: true, run: () => { readApprovals(); areApprovalsShown.value = true; } },
  { title: "Log out", run: () => { void fetch("/logout", { method: "POST" }); } },
];
const actions = (): Action[] => ACTIONS.filter((action) => isOwner.value || action.isChange !== true);

function Header(): JSX.Element {
  const seconds = running.value === null ? 0 : Math.max(0, Math.round((now.value - running.value.since) / 1000));
  return (
    <header class="head">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); nextPane(1); }}>Skip to pane</a>
      <span class="name cut">{workspaceName.value}</span>
      <span class="muted"><span class={`dot ${node.value === "running" && isOnline.value ? "" : "bad"}`} />{isOnline.value ? node.value : "offline"}</span>
      {isOwner.value ? null : <span class="chip warn">observer</span>}
      <Waiting />
      {running.value === null ? null : (
        <span class="muted">evaluating {seconds} s {isOwner.value ? <button class="plain" onClick={interrupt}>Stop</button> : null}</span>
      )}
      <button class="field" onClick={() => openPalette()}><span class="grow">Search or run a command</span><kbd>{keyText("Mod-K")}</kbd></button>
      {isPhone.value ? <button class="right" aria-label={`Actions of ${TITLES[phonePane.value]}`} onClick={() => { sheetOf.value = phonePane.value; }}>⋯</button> : null}
      <button class="wide" aria-label={`Theme: ${settings.value.theme}`} title={`Theme: ${settings.value.theme}`} onClick={() => change({ theme: THEMES[settings.value.theme] })}>
        {{ system: "◐", light: "☀", dark: "☾" }[settings.value.theme]}
      </button>
      <button class="wide" aria-label="Keys" title="Keys" onClick={() => { areKeysShown.value = true; }}>?</button>
    </header>
  );
}

function Banner(): JSX.Element {
  const at = phase.value;
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 500);
    return () => clearTimeout(timer);
  }, []);
  if (at.is === "lost") {
    const seconds = Math.max(0, Math.ceil((at.retryAt - now.value) / 1000));
    return <div class="banner" role="alert">Connection lost. Trying again in {seconds} s. <button class="plain" onClick={() => client.hurry()}>Now</button></div>;
  }
  if (at.is === "stopped") return <div class="banner" role="alert">The workspace was stopped at {clock(at.at).slice(0, 5)}. Run beamtalk web to open it again.</div>;
  if (node.value === "failed") return <div class="banner" role="alert">The image ended four times within a minute. Run beamtalk workspace restart. {isOwner.value ? <button class="plain" onClick={() => reveal("log", true)}>Log</button> : null}</div>;
  if (at.is === "taken-over") return <div class="banner" role="alert">This session is open in another tab. <button class="plain" onClick={() => location.reload()}>Use here</button></div>;
  if (at.is === "other-version") return <div class="banner" role="alert">The workspace was updated. <button class="plain" onClick={() => location.reload()}>Reload</button></div>;
  if (at.is === "connecting" && isLate) return <div class="banner info">Connecting…</div>;
  if (notice.value !== null) {
    return <div class={`banner ${notice.value.kind}`} role="status">{notice.value.text}{notice.value.why === undefined ? null : <button class="plain" onClick={() => { page.value = { title: "Why", text: notice.value?.why ?? "" }; }}>Why</button>}{notice.value.until === null ? <button class="right" aria-label="Dismiss" onClick={() => { notice.value = null; }}>✕</button> : null}</div>;
  }
  return trail.value === null ? <div /> : <div class="banner" role="alert">{trail.value}</div>;
}

function Footer(): JSX.Element {
  return (
    <footer class="foot">
      <span class="cut">{status.value}</span>
      <span class="right" />
      {diskChanged.value.length === 0 ? null : <span>{count(diskChanged.value.length, "file")} changed on disk {isOwner.value ? <>· <button class="link" disabled={isFrozen.value} onClick={loadFromDisk}>Load</button></> : null}</span>}
      {waiting.value === 0 ? null : <span>{waiting.value} {waiting.value === 1 ? "waits" : "wait"} from the last run</span>}
      <button onClick={() => reveal("changes", true)}>{pending.value === 0 ? "no changes" : `${pending.value} unflushed`}</button>
      <span>{{ connecting: "connecting", online: "connected", lost: "disconnected", "logged-out": "logged out", "taken-over": "taken over", stopped: "stopped", "other-version": "updated" }[phase.value.is]}</span>
    </footer>
  );
}

const BAR: [PaneId, string][] = [["transcript", "Transcript"], ["workspace", "Workspace"], ["changes", "Changes"], ["classes", "Classes"]];

function Phone(): JSX.Element {
  return (
    <>
      <main class={`dock ${isOnline.value ? "" : "frozen"}`} id="main"><div class="group grow"><Pane key={phonePane.value} pane={phonePane.value} isVisible /></div></main>
      <nav class="bottom" aria-label="Panes">
        {BAR.map(([pane, title]) => <button key={pane} aria-current={pane === phonePane.value ? "page" : undefined} onClick={() => { phonePane.value = pane; }}>{title}</button>)}
        <button onClick={() => openPalette()}>More</button>
      </nav>
    </>
  );
}

function App(): JSX.Element {
  if (phase.value.is === "logged-out") return <main class="over"><p>You were logged out. Run <code>beamtalk web</code> to come back.</p></main>;
  return (
    <div class="frame">
      <Header />
      <Banner />
      {!isReady.value ? <main class="dock" id="main" aria-busy="true"><div class="skeleton" aria-hidden="true">{[...Array(9).keys()].map((row) => <i key={row} />)}</div></main> : isPhone.value ? <Phone /> : <Dock />}
      <Footer />
      {isPaletteOpen.value ? <Palette actions={actions()} /> : null}
      <Dialogs />
      <ApprovalsDialog />
    </div>
  );
}

let isGoing = false;

/** Keys of panes and of the frame. Those of a text come first and never get here. */
function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const isMod = event.ctrlKey || event.metaKey;
  if (isMod && event.key.toLowerCase() === "k") openPalette();
  else if (isMod && event.key === ".") { if (isOwner.value) interrupt(); else refused(); }
  else if (isMod && event.key.toLowerCase() === "s" && !event.shiftKey) save();
  else if (event.key === "F6") nextPane(event.shiftKey ? -1 : 1);
  else if (isTyping(event.target)) {
    const frame = (event.target as HTMLElement).closest<HTMLElement>(".pane");
    if (event.key !== "Escape" || frame === null) return;
    frame.focus();
  } else if (!isMod && !event.altKey && !isPaletteOpen.value && !areKeysShown.value) {
    if (!letter(event)) return;
  } else return;
  event.preventDefault();
}

function refused(): void {
  status.value = "Observers cannot change anything";
}

/** What the pane edits is saved; the browser's own way of saving a page is of no use here. */
function save(): void {
  const own = actionsOf(focused.value).find((action) => action.key === "Mod-S");
  if (!isOwner.value) refused();
  else if (isFrozen.value && own !== undefined) status.value = "Nothing can be saved before the connection is back";
  else if (own !== undefined) own.run();
  else status.value = "There is nothing to save here";
}

/** A single letter in pane mode; answers whether it did something. */
function letter(event: KeyboardEvent): boolean {
  const pane = focused.value;
  if (isGoing) {
    isGoing = false;
    const target = LETTERS[event.key];
    if (target === undefined || (target === "audit" && !isOwner.value)) return false;
    reveal(target, true);
    if (isPhone.value) phonePane.value = target;
    return true;
  }
  if (event.key === "Enter" && pane !== null && event.target === document.getElementById(`pane-${pane}`)) {
    focusPane(pane);
    return true;
  }
  if (!settings.value.letters) return false;
  const own = actionsOf(pane).find((action) => action.key === event.key || (action.key === "Space" && event.key === " "));
  if (own !== undefined) {
    if (own.isChange === true && !isOwner.value) refused();
    else if (own.isChange === true && isFrozen.value) status.value = "Nothing can be changed before the connection is back";
    else own.run();
    return true;
  }
  if (event.key === "g") isGoing = true;
  else if (event.key === "/") openPalette();
  else if (event.key === "?") areKeysShown.value = true;
  else if (event.key === "f" && pane !== null) full.value = full.value === pane ? null : pane;
  else if (event.key === "r") epoch.value += 1;
  else if (event.key === "." && pane !== null && !isPhone.value) menuOf.value = pane;
  else return false;
  return true;
}

async function readCounts(): Promise<void> {
  const [health, changes] = await Promise.all([client.request("health", {}), client.request("changes", {})]);
  workspaceName.value = health.project?.name ?? workspaceName.value;
  node.value = health.node === "up" || health.node === "running" ? "running" : health.node;
  document.title = `${workspaceName.value} · Beamtalk`;
  trail.value = health.audit.ok ? null : `The audit trail cannot be written (${health.audit.error ?? "unknown"}), ${health.audit.lost} lost`;
  pending.value = changes.entries.filter((entry) => entry.active).length;
  waiting.value = changes.waiting.length;
}

async function begin(): Promise<void> {
  await readDesk().catch(() => undefined);
  readSettings();
  watchDesk();
  openLastLayout();
  isReady.value = true;
  startRoutes();
  watchSymbols();
  startRecent();
  // What is told of changes comes in bursts.
  let counting: ReturnType<typeof setTimeout> | undefined;
  client.on("changes", () => {
    clearTimeout(counting);
    counting = setTimeout(() => void readCounts().catch(() => undefined), 150);
  });
  // A trail that cannot be written any more tells nobody; it is asked for now and then.
  setInterval(() => { if (!document.hidden && isOnline.value && isOwner.value) void readCounts().catch(() => undefined); }, 30_000);
  // The layout is kept as it is left.
  let isFirst = true;
  effect(() => {
    const text = layoutText();
    if (!isFirst) keep(`layout/${layoutName.value}`, text);
    isFirst = false;
  });
}

effect(() => {
  const want = wanted.value;
  if (want === null || !isReady.value) return;
  queueMicrotask(() => {
    reveal(want.pane, want.focus);
    phonePane.value = want.pane;
  });
});
effect(() => {
  if (epoch.value === 0) return;
  if (!isReady.peek()) void begin();
  else readDesk().catch(() => undefined);
  readCounts().catch(() => undefined);
});
effect(() => {
  if (phase.value.is === "lost") alarm("Connection lost");
  // Nothing of the workspace stays behind for whoever comes next.
  if (phase.value.is === "logged-out") {
    place.value = null;
    layout.value = { columns: [] };
  }
});

document.addEventListener("keydown", onKey);
addEventListener("pagehide", leave);
document.addEventListener("visibilitychange", () => { if (document.hidden) sendAll(); });
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
void start().then(watchApprovals);
export { role };
