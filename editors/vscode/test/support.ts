// A project on disk, the extension in it, and the real binary behind.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { activate, deactivate } from "../src/extension";
import * as mock from "./mock/vscode";

export const binary = resolve(process.env.BEAMTALK ?? "../../target/debug/beamtalk");
export const folder = mkdtempSync(join(tmpdir(), "beamtalk-vscode-"));
export const lamp = join(folder, "src/Lamp.bt");
const context = { subscriptions: [] as { dispose(): unknown }[] };

export function write(path: string, text: string): string {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), text);
  return join(folder, path);
}

export function beamtalk(...words: string[]): string {
  const { status, stdout, stderr } = spawnSync(binary, words, { cwd: folder, encoding: "utf8", timeout: 60_000 });
  if (status !== 0) throw new Error(`beamtalk ${words.join(" ")}: ${stdout}${stderr}`);
  return stdout;
}

/** Waits for an event, not for a time; the limit only ends a broken run. */
export function until<T>(event: (listener: (value: T) => unknown) => { dispose(): unknown }, wanted: (value: T) => boolean): Promise<T> {
  return new Promise((found, failed) => {
    const limit = setTimeout(() => failed(new Error("nothing came")), 30_000);
    const subscription = event((value) => {
      if (!wanted(value)) return;
      clearTimeout(limit);
      subscription.dispose();
      found(value);
    });
  });
}

export async function start(): Promise<void> {
  write("beamtalk.toml", '[package]\nname = "shop"\nversion = "0.1.0"\n');
  write("src/Lamp.bt", "/// Gives light.\nActor subclass: Lamp\n  state: on = false\n\n  /// Switches over.\n  toggle => self.on := self.on not\n");
  write(
    "test/LampTest.bt",
    "TestCase subclass: LampTest\n  testToggle => self assert: (Lamp spawn) toggle equals: true\n\n  testWrong => self assert: 1 equals: 2\n",
  );
  process.env.BEAMTALK_HOME = join(folder, "home");
  mock.state.settings["beamtalk.path"] = binary;
  mock.workspace.workspaceFolders.push({ uri: mock.Uri.file(folder), name: "shop", index: 0 });
  await activate(context as never);
}

export async function stop(): Promise<void> {
  await deactivate();
  for (const part of context.subscriptions) part.dispose();
  rmSync(folder, { recursive: true, force: true });
}
