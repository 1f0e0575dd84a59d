// Builds the browser workspace into dist/: split, hashed, compressed, and held to its budget.
//   node build.mjs            build once
//   node build.mjs --watch    build again after every change
import { build, context } from "esbuild";
import { gzipSync } from "node:zlib";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, dirname } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const dist = join(here, "dist");

/** What the page needs before it can be used, in bytes as sent. */
const BUDGET = 350 * 1024;
/** The largest chunk of our own code beside the first, in bytes as sent. */
const CHUNK = 40 * 1024;

const options = {
  absWorkingDir: here,
  entryPoints: ["src/main.ts"],
  outdir: "dist/assets",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  metafile: true,
  write: false,
  jsx: "automatic",
  jsxImportSource: "preact",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  legalComments: "none",
  logLevel: "warning",
};

/** Everything the page loads at once: the entry, what it imports, and the workspace itself. */
function firstFiles(outputs) {
  const entry = Object.keys(outputs).find((name) => outputs[name].entryPoint === "src/main.ts");
  const app = Object.keys(outputs).find((name) => outputs[name].entryPoint === "src/app.tsx");
  const seen = new Set();
  const visit = (name) => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const used of outputs[name].imports) if (used.kind === "import-statement") visit(used.path);
  };
  visit(entry);
  visit(app);
  return { entry, files: [...seen], styles: [outputs[entry], outputs[app]].flatMap((one) => one.cssBundle ?? []) };
}

function finish(result) {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(join(dist, "assets"), { recursive: true });
  const sizes = new Map();
  for (const file of result.outputFiles) {
    // No time stamp and no name in the head: equal sources give equal bytes.
    const bytes = gzipSync(file.contents, { level: 9 });
    const name = file.path.slice(dist.length + 1);
    sizes.set(`dist/${name}`, bytes.length);
    writeFileSync(join(dist, `${name}.gz`), bytes);
  }
  const { outputs } = result.metafile;
  const { entry, files, styles } = firstFiles(outputs);
  const served = (name) => name.slice("dist".length);
  const page = readFileSync(join(here, "index.html"), "utf8")
    .replace("<!-- styles -->", styles.map((name) => `<link rel="stylesheet" href="${served(name)}">`).join("\n"))
    // Only the entry: a page that logs in needs no more, and is left at once.
    .replace("<!-- script -->", `<script type="module" src="${served(entry)}"></script>`);
  writeFileSync(join(dist, "index.html"), page);
  const first = [...files, ...styles].reduce((sum, name) => sum + sizes.get(name), 0) + page.length;
  const requests = files.length + styles.length + 1;
  const kilobytes = (bytes) => `${(bytes / 1024).toFixed(1)} KB`;
  console.log(`web: first paint ${kilobytes(first)} in ${requests} requests, ${sizes.size} files`);
  const faults = [];
  if (first > BUDGET) faults.push(`the first paint takes ${kilobytes(first)}, over ${kilobytes(BUDGET)}`);
  for (const [name, output] of Object.entries(outputs)) {
    if (files.includes(name) || !output.entryPoint) continue;
    if (sizes.get(name) > CHUNK) faults.push(`${output.entryPoint} takes ${kilobytes(sizes.get(name))}, over ${kilobytes(CHUNK)}`);
  }
  for (const fault of faults) console.error(`web: ${fault}`);
  return faults.length === 0;
}

if (process.argv.includes("--watch")) {
  const watching = await context({
    ...options,
    plugins: [{ name: "finish", setup: (made) => made.onEnd((result) => { if (result.errors.length === 0) finish(result); }) }],
  });
  await watching.watch();
} else if (!finish(await build(options))) {
  process.exitCode = 1;
}
