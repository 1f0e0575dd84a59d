// All checks of the extension: types, the grammar, and the extension against the real binary.
//   node test.mjs [NAME]   only the files whose name has NAME in it
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

process.chdir(dirname(fileURLToPath(import.meta.url)));
const wanted = process.argv[2] ?? "";

function run(words, environment = {}) {
  const { status } = spawnSync(process.execPath, words, { stdio: "inherit", env: { ...process.env, ...environment } });
  if (status !== 0) process.exit(1);
}

run(["node_modules/typescript/bin/tsc", "--noEmit"]);
const entryPoints = readdirSync("test").filter((name) => name.endsWith(".test.ts") && name.includes(wanted)).map((name) => join("test", name));
rmSync(".build", { recursive: true, force: true });
await build({
  entryPoints,
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: ".build",
  outExtension: { ".js": ".mjs" },
  // The edge: what the editor would give the extension.
  alias: { vscode: "./test/mock/vscode.ts" },
  banner: { js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);" },
  logLevel: "warning",
});
run(["--test", "--test-reporter=spec", ...readdirSync(".build").map((name) => join(".build", name))]);
