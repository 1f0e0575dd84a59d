// A daemon of its own for a file of tests: a temporary home, a small project, a port of the system's choice.

import { execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The binary that is tested. */
export const BINARY = process.env.BEAMTALK_BINARY ?? resolve("../target/debug/beamtalk");

const FILES: Record<string, string> = {
  "beamtalk.toml": '[package]\nname = "lamp"\nversion = "0.1.0"\n',
  "src/Lamp.bt": `/// A lamp that can be switched.
Actor subclass: Lamp
  state: on = false

  /// Switch it, and answer whether it is on.
  toggle => self.on := self.on not

  isOn => self.on

  broken => self missing: 3
`,
  "test/LampTest.bt": `TestCase subclass: LampTest

  testToggle =>
    lamp := Lamp spawn
    lamp toggle
    self assert: lamp isOn

  testTwice =>
    lamp := Lamp spawn
    lamp toggle
    lamp toggle
    self deny: lamp isOn
`,
};

export class House {
  readonly home: string;
  readonly project: string;
  private constructor(readonly root: string) {
    this.home = join(root, "home");
    this.project = join(root, "lamp");
  }

  static async open(files: Record<string, string> = {}, flags: string[] = []): Promise<House> {
    const house = new House(mkdtempSync(join(tmpdir(), "bt-web-")));
    mkdirSync(house.home, { mode: 0o700 });
    chmodSync(house.home, 0o700);
    for (const [name, text] of Object.entries({ ...FILES, ...files })) house.write(name, text);
    await house.beamtalk("workspace", "start", ...flags);
    return house;
  }

  write(name: string, text: string): void {
    const path = join(this.project, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  read(name: string): string {
    return readFileSync(join(this.project, name), "utf8");
  }

  get environment(): NodeJS.ProcessEnv {
    return { ...process.env, BEAMTALK_HOME: this.home, NO_COLOR: "1" };
  }

  async beamtalk(...words: string[]): Promise<string> {
    const { stdout } = await run(BINARY, words, { cwd: this.project, env: this.environment });
    return stdout;
  }

  /** An address that logs in once. */
  async url(...flags: string[]): Promise<string> {
    return (await this.beamtalk("web", "--print-url", ...flags)).trim();
  }

  /** The process of the daemon. */
  async pid(): Promise<number> {
    const status = JSON.parse(await this.beamtalk("--json", "workspace", "status")) as Record<string, unknown>;
    return Number(status.pid);
  }

  /** What the daemon wrote. */
  async log(): Promise<string> {
    const { stdout } = await run("find", [this.home, "-name", "daemon.log"]);
    return readFileSync(stdout.trim().split("\n")[0] ?? "", "utf8").slice(-50_000);
  }

  async close(): Promise<void> {
    await this.beamtalk("workspace", "stop", "--force").catch(() => undefined);
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** Something that runs beside a test and is ended with it. */
export function beside(program: string, words: string[]): () => void {
  const child = spawn(program, words, { stdio: "ignore" });
  return () => child.kill("SIGKILL");
}
