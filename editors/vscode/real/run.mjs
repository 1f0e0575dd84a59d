// The extension in a real VS Code: the server build of code-server from npm, its page in Chromium, `beamtalk lsp` behind it.
//   node run.mjs BINARY     screenshots go to ../shots
// npm fetches nothing but packages: install scripts are off, the two native modules that the server loads are compiled here.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const binary = resolve(process.argv[2] ?? "../../../target/debug/beamtalk");
const home = resolve(here, "../../../_build/vscode");
const code = join(home, "node_modules/code-server/lib/vscode");
const LIMIT = 60_000;

function run(folder, program, ...words) {
  const { status, stderr, stdout } = spawnSync(program, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} in ${folder}\n${stdout}\n${stderr}`);
  return stdout;
}

function find(name) {
  return (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name)).find(existsSync);
}

/** Installed once below _build, which `make clean` removes. */
function install() {
  if (existsSync(join(home, "done"))) return;
  mkdirSync(home, { recursive: true });
  cpSync(join(here, "package.json"), join(home, "package.json"));
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
  run(home, "npm", "install", ...quiet);
  run(code, "npm", "install", "--omit=dev", ...quiet);
  run(code, "npm", "rebuild", "--silent", "@vscode/spdlog", "native-watchdog");
  writeFileSync(join(home, "done"), "");
}

const chromium = process.env.CHROMIUM ?? find("chromium") ?? find("chromium-browser");
if (!chromium) {
  console.log("vscode: no Chromium, nothing is run (apt install chromium)");
  process.exit(0);
}
install();
const { chromium: browsers } = await import(join(home, "node_modules/playwright-core/index.mjs"));

const work = mkdtempSync(join(tmpdir(), "beamtalk-code-"));
const project = join(work, "shop");
mkdirSync(join(project, "src"), { recursive: true });
writeFileSync(join(project, "beamtalk.toml"), '[package]\nname = "shop"\nversion = "0.1.0"\n');
writeFileSync(
  join(project, "src/Lamp.bt"),
  `/// Gives light.
Actor subclass: Lamp
  state: on = false

  /// Switches over.
  toggle => self.on := self.on not

  /// What it is, in words.
  describe =>
    names := #("bulb", "tube") collect: [:each | "{each} is {self.on}"]
    names match: [
      #(first, ...rest) -> first
      _ -> "nothing"
    ]
`,
);
mkdirSync(join(work, "data/data/Machine"), { recursive: true });
writeFileSync(
  join(work, "data/data/Machine/settings.json"),
  JSON.stringify({ "beamtalk.path": binary, "workbench.startupEditor": "none", "window.commandCenter": false }),
);

const common = ["--server-data-dir", join(work, "data"), "--extensions-dir", join(work, "extensions"), "--accept-server-license-terms", "--telemetry-level", "off"];
const main = join(code, "out/server-main.js");
let server;
let browser;
let isLive = false;

async function start() {
  server = spawn(process.execPath, [main, "--host", "127.0.0.1", "--port", "0", "--without-connection-token", ...common], {
    // Without its shop, which would be asked for news: tests speak to this machine only.
    env: { ...process.env, BEAMTALK_HOME: join(work, "home"), EXTENSIONS_GALLERY: "{}" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: server.stdout })) {
    const found = line.match(/Web UI available at (http:\S+)/);
    if (found) return found[1].replace("localhost", "127.0.0.1");
  }
  throw new Error("the server of VS Code ended");
}

try {
  run(resolve(here, ".."), process.execPath, "build.mjs", "package");
  const installed = run(work, process.execPath, main, "--install-extension", resolve(here, "../beamtalk-0.1.0.vsix"), ...common);
  assert.match(installed, /successfully installed/);

  const address = await start();
  browser = await browsers.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1100, height: 620 } });
  page.setDefaultTimeout(LIMIT);
  await page.goto(`${address}/?folder=${project}`);
  const shots = resolve(here, "../shots");
  mkdirSync(shots, { recursive: true });

  await page.getByRole("button", { name: "Yes, I trust the authors" }).click();

  // The file, by the tree of files.
  await page.getByRole("treeitem", { name: "src" }).click();
  await page.getByRole("treeitem", { name: "Lamp.bt" }).dblclick();
  const editor = page.locator(".monaco-editor[data-uri$='Lamp.bt']");
  await editor.locator(".view-line").first().waitFor();

  // What only the server knows: a type, a count, a finding.
  await editor.getByText(":: List").first().waitFor();
  await editor.getByText("0 senders").first().waitFor();
  await page.getByLabel(/Warnings: 1/).first().waitFor();
  await page.locator("[id*='beamtalk.status']").first().waitFor();
  await page.screenshot({ path: join(shots, "editor.png") });

  // Hover.
  await editor.getByText("Lamp", { exact: true }).first().hover();
  await page.locator(".monaco-hover").getByText("Gives light.").first().waitFor();
  await page.screenshot({ path: join(shots, "hover.png") });

  // A fault while typing, and its end.
  await editor.locator(".view-line").last().click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("  broken => self frob: (");
  await page.getByLabel(/Errors: 1/).first().waitFor();
  await page.keyboard.press("Control+Shift+K");
  await page.getByLabel(/Errors: 1/).first().waitFor({ state: "detached" });
  await page.keyboard.press("Control+S");

  // Without a workspace the view says so; with one it lists who lives.
  await page.getByRole("tab", { name: "Beamtalk" }).first().click();
  await page.getByText("No workspace runs for this folder.").waitFor();
  isLive = true;
  run(project, "env", `BEAMTALK_HOME=${join(work, "home")}`, binary, "workspace", "start");
  await page.getByText("No actor lives in the workspace.").waitFor();

  // A line is evaluated; its value stands behind it, which the editor paints with a style.
  await editor.locator(".view-line").last().click();
  await page.keyboard.press("Control+End");
  await page.keyboard.press("Enter");
  await page.keyboard.type("// Lamp spawn toggle");
  for (const _ of "Lamp spawn toggle") await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Control+Alt+E");
  await page.waitForFunction(() => [...document.querySelectorAll(".view-line span")].some((part) => getComputedStyle(part, "::after").content.includes("=> true")));
  await page.getByRole("treeitem", { name: /Lamp/ }).first().click();
  await page.getByRole("treeitem").filter({ hasText: /^on\s*true$/ }).first().waitFor();
  await page.screenshot({ path: join(shots, "live.png") });
  console.log("vscode: the extension works in a real VS Code; screenshots in editors/vscode/shots");
} catch (error) {
  await browser?.contexts()[0]?.pages()[0]?.screenshot({ path: join(here, "../shots/failed.png") });
  throw error;
} finally {
  await browser?.close();
  if (isLive) run(project, "env", `BEAMTALK_HOME=${join(work, "home")}`, binary, "workspace", "stop");
  server?.kill("SIGTERM");
  rmSync(work, { recursive: true, force: true });
}
