// The panes there are. They are small; the large libraries some of them need are loaded when first used.

import type { ComponentType } from "preact";
import { PANES, kindOf, type PaneId, type PaneKind, type PaneProps } from "../kernel/layout";
import Actors from "../panes/actors/pane";
import Audit from "../panes/audit/pane";
import Bindings from "../panes/bindings/pane";
import Changes from "../panes/changes/pane";
import Classes from "../panes/classes/pane";
import Inspector from "../panes/inspector/pane";
import Log from "../panes/log/pane";
import Supervision from "../panes/supervision/pane";
import Tests from "../panes/tests/pane";
import Transcript from "../panes/transcript/pane";
import Workspace from "../panes/workspace/pane";

const NAMES: Record<PaneKind, string> = {
  workspace: "Workspace", classes: "Classes", inspector: "Inspector", actors: "Actors", supervision: "Supervision",
  transcript: "Transcript", changes: "Changes", tests: "Tests", bindings: "Bindings", log: "Log", audit: "Audit",
};
export const TITLES = Object.fromEntries(PANES.map((pane) => [pane, `${NAMES[kindOf(pane)]}${pane === kindOf(pane) ? "" : ` ${pane.slice(-1)}`}`])) as Record<PaneId, string>;

/** The sign before the title. */
export const SIGNS: Record<PaneKind, string> = {
  workspace: "›_", classes: "{}", inspector: "◎", actors: "●", supervision: "⊤", transcript: "¶", changes: "±", tests: "✓", bindings: "≔", log: "≡", audit: "§",
};

/** The letter after `g`. */
export const LETTERS: Record<string, PaneKind> = {
  w: "workspace", c: "classes", i: "inspector", a: "actors", s: "supervision", t: "transcript", d: "changes", e: "tests",
  b: "bindings", l: "log", u: "audit",
};

export const BODIES: Record<PaneKind, ComponentType<PaneProps>> = {
  workspace: Workspace, classes: Classes, inspector: Inspector, actors: Actors, supervision: Supervision, transcript: Transcript,
  changes: Changes, tests: Tests, bindings: Bindings, log: Log, audit: Audit,
};
