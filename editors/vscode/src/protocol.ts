// What the language server is asked beyond the standard protocol: commands with one object each way.
import type { Range } from "vscode-languageclient";

export type State = { state: "none" | "running"; id?: string; classes?: number; actors?: number; unflushed?: number; conflicts?: number };

export type Evaluation = { ok: boolean; value?: string; output?: string; error?: { kind: string; message: string } };

export type Actor = { id: string; class: string; name?: string; state?: string; mailbox?: number; uri?: string; range?: Range };

export type Inspection = { title: string; class: string; value: string; parts: { name: string; value: string; id?: string }[] };

export type TestCase = { id: string; class: string; selector: string; uri: string; range: Range };

export type TestResult = { id: string; outcome: "passed" | "failed" | "errored" | "skipped"; message?: string; ms?: number };

export interface Commands {
  "beamtalk.status": { argument: Record<string, never>; answer: State };
  "beamtalk.evaluate": { argument: { uri: string; text: string }; answer: Evaluation };
  "beamtalk.actors": { argument: Record<string, never>; answer: { actors: Actor[] } };
  "beamtalk.inspect": { argument: { id: string }; answer: Inspection };
  "beamtalk.tests": { argument: { uri?: string }; answer: { tests: TestCase[] } };
  "beamtalk.runTest": { argument: { ids: string[] }; answer: { results: TestResult[] } };
  "beamtalk.load": { argument: { uri: string }; answer: { loaded?: string[] } };
  "beamtalk.flush": { argument: { confirmDestructive?: boolean }; answer: { flushed: string[]; needsConfirmation?: string[] } };
  "beamtalk.flush.file": { argument: { uri: string; confirmDestructive?: boolean }; answer: { flushed: string[]; needsConfirmation?: string[] } };
  "beamtalk.revert": { argument: { uri: string }; answer: { reverted?: string[] } };
}
