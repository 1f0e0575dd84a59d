// All checks of the browser workspace: types, units, rules, budget, and the real thing in a real browser.
//   node test.mjs            everything
//   node test.mjs units      without a browser
//   node test.mjs e2e [NAME] only the scenarios whose file has NAME in its path
//                            (BEAMTALK_TEST: only tests whose name matches)
//   node test.mjs bench      the figures against their limits, with a release binary on a quiet machine
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
process.chdir(here);
const [what, wanted = ""] = process.argv.slice(2);

function files(folder, suffix) {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(suffix))
    .map((entry) => relative(here, join(entry.parentPath ?? entry.path, entry.name)))
    .sort();
}

function run(program, words, environment = {}) {
  const { status } = spawnSync(program, words, { stdio: "inherit", env: { ...process.env, ...environment } });
  if (status !== 0) {
    console.error(`web: ${[program, ...words].slice(0, 3).join(" ")} failed`);
    process.exit(1);
  }
}

/** Bundle tests for node and run them with its own runner. */
async function test(entryPoints, concurrency) {
  rmSync(".build", { recursive: true, force: true });
  await build({ entryPoints, bundle: true, platform: "node", format: "esm", packages: "external", outdir: ".build", outbase: ".", outExtension: { ".js": ".mjs" }, jsx: "automatic", jsxImportSource: "preact", logLevel: "warning" });
  run(process.execPath, ["--test", `--test-concurrency=${concurrency}`, "--test-reporter=spec", ...(process.env.BEAMTALK_TEST === undefined ? [] : [`--test-name-pattern=${process.env.BEAMTALK_TEST}`]), ...files(".build", ".mjs")]);
}

function findChromium() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const folders = (process.env.PATH ?? "").split(delimiter);
  return ["chromium", "chromium-browser"].flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync);
}

function sameBytes(one, two) {
  const names = files(one, "");
  const others = files(two, "").map((name) => name.replace(two, one));
  return names.join() === others.join() && names.every((name) => readFileSync(name).equals(readFileSync(name.replace(one, two))));
}

if (what !== "e2e" && what !== "bench") {
  run(process.execPath, ["node_modules/typescript/bin/tsc", "--noEmit"]);
  await test(["rules.test.ts", ...files("src", ".test.ts")], 2);
  // The same sources give the same bytes, within the budget.
  run(process.execPath, ["build.mjs"]);
  rmSync(".again", { recursive: true, force: true });
  cpSync("dist", ".again", { recursive: true });
  run(process.execPath, ["build.mjs"]);
  if (!sameBytes("dist", ".again")) {
    console.error("web: two builds of the same sources differ");
    process.exit(1);
  }
  rmSync(".again", { recursive: true, force: true });
}
if (what !== "units") {
  const scenarios = [...files("e2e/scenarios", ".ts"), ...files("e2e/security", ".ts"), ...files("e2e/perf", ".ts")];
  if (findChromium() === undefined) {
    console.log(`web: no Chromium, ${scenarios.length} files of scenarios skipped (apt install chromium)`);
    process.exit(process.env.CI === "1" ? 1 : 0);
  }
  if (what === "e2e") run(process.execPath, ["build.mjs"]);
  if (what === "bench") process.env.BEAMTALK_BENCH = "1";
  const name = what === "bench" ? "e2e/perf" : wanted;
  mkdirSync("e2e/shots", { recursive: true });
  await test(scenarios.filter((one) => one.includes(name)), 2);
}
rmSync(".build", { recursive: true, force: true });
