// The panes there are. They are small; the large libraries some of them need are loaded when first used.

import type { ComponentType } from "preact";
import type { PaneId, PaneProps } from "../kernel/layout";
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

export const TITLES: Record<PaneId, string> = {
  workspace: "Workspace", classes: "Classes", inspector: "Inspector", actors: "Actors", supervision: "Supervision",
  transcript: "Transcript", changes: "Changes", tests: "Tests", bindings: "Bindings", log: "Log", audit: "Audit",
};

/** The sign before the title. */
export const SIGNS: Record<PaneId, string> = {
  workspace: "›_", classes: "{}", inspector: "◎", actors: "●", supervision: "⊤", transcript: "¶", changes: "±", tests: "✓", bindings: "≔", log: "≡", audit: "§",
};

/** The letter after `g`. */
export const LETTERS: Record<string, PaneId> = {
  w: "workspace", c: "classes", i: "inspector", a: "actors", s: "supervision", t: "transcript", d: "changes", e: "tests",
  b: "bindings", l: "log", u: "audit",
};

export const BODIES: Record<PaneId, ComponentType<PaneProps>> = {
  workspace: Workspace, classes: Classes, inspector: Inspector, actors: Actors, supervision: Supervision, transcript: Transcript,
  changes: Changes, tests: Tests, bindings: Bindings, log: Log, audit: Audit,
};
