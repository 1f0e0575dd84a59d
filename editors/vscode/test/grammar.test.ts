// The TextMate grammar under the engine VS Code uses, against snapshots: each token with its scopes.
//   UPDATE=1 writes what is found.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

const require = createRequire(join(process.cwd(), "package.json"));
const { INITIAL, Registry, parseRawGrammar } = require("vscode-textmate") as typeof import("vscode-textmate");
const oniguruma = require("vscode-oniguruma") as typeof import("vscode-oniguruma");

const PATH = "syntaxes/beamtalk.tmLanguage.json";

async function load() {
  await oniguruma.loadWASM(readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")));
  const registry = new Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => (scope === "source.beamtalk" ? parseRawGrammar(readFileSync(PATH, "utf8"), PATH) : null),
  });
  const grammar = await registry.loadGrammar("source.beamtalk");
  assert.ok(grammar);
  return grammar;
}

const grammar = await load();

function tokens(text: string): { text: string; scopes: string[] }[][] {
  let state = INITIAL;
  return text.split("\n").map((line) => {
    const result = grammar.tokenizeLine(line, state);
    state = result.ruleStack;
    return result.tokens
      .map((token) => ({
        text: line.slice(token.startIndex, token.endIndex),
        scopes: token.scopes.slice(1).map((scope) => scope.replace(/\.beamtalk$/, "")),
      }))
      .filter((token) => token.text.trim() !== "");
  });
}

function show(text: string): string {
  const lines = text.split("\n");
  return tokens(text)
    .map((line, index) => [`> ${lines[index]}`.trimEnd(), ...line.map((token) => `    ${token.text.trim()}  ${token.scopes.join(" ")}`)].join("\n"))
    .join("\n");
}

for (const name of readdirSync("test/grammar").filter((name) => /\.(bt|btscript)$/.test(name))) {
  test(`the tokens of ${name}`, () => {
    const found = `${show(readFileSync(join("test/grammar", name), "utf8").trimEnd())}\n`;
    const path = join("test/grammar", `${name}.snap`);
    if (process.env.UPDATE) writeFileSync(path, found);
    assert.ok(existsSync(path), "UPDATE=1 writes it");
    assert.equal(found, readFileSync(path, "utf8"));
  });
}

/** What must hold whatever the snapshots say. */
test("code is no comment, comments are no code", () => {
  const kinds = (text: string) => tokens(text).flat().map((token) => [token.text, token.scopes.at(-1)]);
  assert.deepEqual(kinds('"http://x"').at(1), ["http://x", "string.quoted.double"]);
  assert.deepEqual(kinds("// \"x\" nil"), [["// \"x\" nil", "comment.line.double-slash"]]);
  assert.deepEqual(kinds("$\" foo").at(0), ["$\"", "constant.character"]);
});

/** Nothing of the library leaks: after the last line of a file no string or comment is open. */
test("every file of the library ends as it began", () => {
  const folder = "../../lib";
  let count = 0;
  for (const name of readdirSync(folder, { recursive: true }) as string[]) {
    if (!name.endsWith(".bt")) continue;
    let state = INITIAL;
    for (const line of readFileSync(join(folder, name), "utf8").split("\n")) state = grammar.tokenizeLine(line, state).ruleStack;
    assert.equal(state.depth, 1, name);
    count += 1;
  }
  assert.ok(count > 80, `${count} files`);
});
