// The REPL's commands in the palette: the same names, done with the same ops. What a command shows is a pane here.

import { inspect } from "../kernel/inspect";
import type { PaneId } from "../kernel/layout";
import { ask, toast } from "../kernel/notices";
import { go } from "../kernel/routes";
import { client, fault, isOwner, status } from "../kernel/store";
import { count } from "../kernel/text";
import { reveal } from "./dock";

export interface Command {
  name: string;
  short?: string;
  /** What is typed behind it. */
  takes?: string;
  does: string;
  /** Not for observers. */
  isChange?: boolean;
  run: (rest: string) => unknown;
}

const show = (pane: PaneId) => (): void => reveal(pane, true);

/** Say what came of it, or why it was refused. */
function told<Answer>(work: Promise<Answer>, text: (answer: Answer) => string): void {
  work.then((answer) => toast(text(answer)), (cause: unknown) => { status.value = fault(cause).message; });
}

/** A number, a name, or everything. */
function chosen(rest: string): { seq: number } | { class: string } | { all: boolean } {
  if (/^\d+$/.test(rest)) return { seq: Number(rest) };
  return rest === "" || rest === "all" ? { all: true } : { class: rest };
}

const words = (rest: string): string[] => rest.split(/\s+/).filter((word) => word !== "");
const bare = (selector: string): string => selector.replace(/^#/, "");

/** `Class`, `Class selector`, `Class class selector`. */
function openSource(rest: string): void {
  const [name = "", ...more] = words(rest);
  const isClass = more[0] === "class";
  go("class", isClass ? `${name}.class` : name, ...(isClass ? more.slice(1) : more).map(bare));
}

export const COMMANDS: Command[] = [
  { name: "help", short: "h", takes: "[Class [selector]]", does: "documentation", run: (rest) => (rest === "" ? (location.hash = "#/classes") : openSource(rest)) },
  { name: "load", short: "l", takes: "PATH", does: "load a file or directory", isChange: true, run: (path) => told(client.request("load-file", { path }), (answer) => `loaded ${count(answer.classes.length, "class").replace("classs", "classes")}`) },
  { name: "reload", short: "r", takes: "Class", does: "load its file again", isChange: true, run: (name) => told(client.request("reload", { class: name }), () => `${name} reloaded`) },
  { name: "sync", short: "s", does: "load changed project files", isChange: true, run: () => told(client.request("load-project", {}), (answer) => answer.summary ?? "loaded") },
  { name: "unload", takes: "Class", does: "forget a class", isChange: true, run: (name) => told(client.request("unload", { class: name }), () => `${name} unloaded`) },
  { name: "bindings", short: "b", does: "names and values", run: show("bindings") },
  { name: "clear", does: "drop session locals", isChange: true, run: () => told(client.request("clear", {}), () => "variables cleared") },
  { name: "actors", short: "a", does: "living actors", run: show("actors") },
  { name: "top", does: "living actors", run: show("actors") },
  { name: "inspect", short: "i", takes: "EXPR", does: "look into a value", isChange: true, run: (code) => { client.request("eval", { code, hold: true }).then((answer) => inspect({ ref: answer.ref ?? "" }, code), (cause: unknown) => { status.value = fault(cause).message; }); } },
  { name: "kill", takes: "PID", does: "stop an actor", isChange: true, run: async (actor) => { if (await ask(`Stop ${actor}?`, "It is asked to end; a supervisor may start it again.", "Stop")) told(client.request("kill", { actor }), () => `${actor} ended`); } },
  { name: "test", short: "t", takes: "[Class]", does: "run tests", isChange: true, run: (name) => { reveal("tests", false); told(client.request("load-tests", {}).then(() => client.request("test", name === "" ? {} : { class: name })), (answer) => `${answer.results.passed} passed, ${answer.results.failed} failed`); } },
  { name: "time", takes: "EXPR", does: "value and milliseconds", isChange: true, run: (code) => { const began = performance.now(); told(client.request("eval", { code }), (answer) => `${answer.text} (${Math.round(performance.now() - began)} ms)`); } },
  { name: "interrupt", short: "int", does: "stop this session's evaluation", isChange: true, run: () => told(client.request("interrupt", {}), (answer) => (answer.value ? "interrupted" : "nothing runs")) },
  { name: "changes", does: "the change log", run: show("changes") },
  { name: "dirty", does: "the change log", run: show("changes") },
  { name: "diff", takes: "[Class]", does: "image against file", run: show("changes") },
  { name: "take", takes: "image|disk Class [selector]", does: "settle a conflict", isChange: true, run: (rest) => { const [from = "", name = "", selector] = words(rest); told(client.request("take", { from: from === "disk" ? "disk" : "image", class: name, ...(selector === undefined ? {} : { selector: bare(selector) }) }), () => `the ${from}'s text was taken`); } },
  { name: "restore", takes: "SEQ|Class|all", does: "install changes of the last run", isChange: true, run: (rest) => told(client.request("restore", chosen(rest)), (answer) => `restored ${count(answer.entries.length, "change")}`) },
  { name: "discard", takes: "SEQ|Class|all", does: "set changes aside", isChange: true, run: async (rest) => { if (await ask(`Discard ${rest === "" ? "all changes" : rest}?`, "What is on disk is loaded for them; :restore brings one back.", "Discard")) told(client.request("discard", chosen(rest)), (answer) => `set ${count(answer.entries.length, "change")} aside`); } },
  { name: "flush", takes: "[Class]", does: "write changes to their files", isChange: true, run: (name) => told(client.request("flush", name === "" ? {} : { class: name }), (answer) => `flushed ${count(answer.files.length, "file")}`) },
  { name: "revert", takes: "SEQ", does: "undo one change", isChange: true, run: (seq) => told(client.request("revert", { seq: Number(seq) }), () => `change ${seq} reverted`) },
  { name: "remove-method", takes: "Class selector", does: "remove a method", isChange: true, run: async (rest) => { const [name = "", selector = ""] = words(rest); if (await ask(`Remove ${name}>>${selector}?`, "From the image; a flush removes it from its file.", "Remove")) told(client.request("remove-method", { class: name, selector: bare(selector) }), () => `${name}>>${selector} removed`); } },
  { name: "remove-class", takes: "Class", does: "remove a class", isChange: true, run: async (name) => { if (await ask(`Remove ${name}?`, "From the image; its actors stop.", "Remove")) told(client.request("remove-class", { class: name }), () => `${name} removed`); } },
  { name: "transcript", does: "what was written", run: show("transcript") },
  { name: "source", short: "src", takes: "Class [class] [selector]", does: "source as it runs", run: openSource },
  { name: "edit", short: "e", takes: "Class [selector]", does: "open the source", run: openSource },
  { name: "senders", takes: "sel", does: "who sends it", run: (rest) => go("senders", bare(rest)) },
  { name: "implementors", takes: "sel", does: "who has it", run: (rest) => go("implementors", bare(rest)) },
  { name: "references", takes: "Class", does: "who names it", run: (rest) => go("references", rest) },
  { name: "recheck", takes: "image", does: "check all live classes", run: () => told(client.request("recheck-image", {}), (answer) => `${count(answer.findings.length, "finding")}`) },
  { name: "status", does: "how the workspace does", run: () => told(client.request("health", {}), (answer) => `node ${answer.node}, ${count(answer.sessions, "session")}, up ${answer.uptime_s} s`) },
];

/** The command a text begins with, and what stands behind it. */
export function commandOf(text: string): { command: Command; rest: string } | null {
  const [word = "", ...rest] = text.trim().split(/\s+/);
  const command = COMMANDS.find((one) => one.name === word || one.short === word);
  return command === undefined ? null : { command, rest: rest.join(" ") };
}

/** Those this role may use. */
export function allowed(): Command[] {
  return COMMANDS.filter((one) => isOwner.value || one.isChange !== true);
}
