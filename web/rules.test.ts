// Rules over the sources: what may never be written, who may use whom, and colours that can be read.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import test from "node:test";

const sources = readdirSync("src", { withFileTypes: true, recursive: true })
  .filter((entry) => entry.isFile() && /\.(ts|tsx|css)$/.test(entry.name) && entry.name !== "protocol.ts")
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name));

test("nothing makes markup or code of text", () => {
  const forbidden = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|dangerouslySetInnerHTML|\beval\(|new Function|srcdoc|style=(?:"|\{`|\{")|https?:\/\/|localStorage|serviceWorker/;
  for (const name of sources.filter((one) => !one.endsWith(".test.ts"))) {
    readFileSync(name, "utf8").split("\n").forEach((line, at) => {
      assert.ok(!forbidden.test(line), `${name}:${at + 1}: ${line.trim()}`);
    });
  }
});

test("layers use only those below them, and no pane another", () => {
  const order = ["wire", "kernel", "editor", "parts", "views", "panes", "shell", ""];
  const layer = (path: string): string => path.split("/")[1]?.includes(".") === true ? "" : (path.split("/")[1] ?? "");
  for (const name of sources.filter((one) => /tsx?$/.test(one))) {
    for (const [, used = ""] of readFileSync(name, "utf8").matchAll(/from "(\.[^"]*)"/g)) {
      const target = normalize(join(dirname(name), used));
      const [from, to] = [layer(name), layer(target)];
      assert.ok(order.indexOf(to) <= order.indexOf(from), `${name} uses ${target}`);
      if (from === "panes" && to === "panes") assert.equal(target.split("/")[2], name.split("/")[2], `${name} uses ${target}`);
    }
  }
});

test("files stay small", () => {
  for (const name of sources) assert.ok(readFileSync(name, "utf8").split("\n").length <= 400, `${name} has more than 400 lines`);
});

test("the lock file names no host and no package runs a script", () => {
  const lock = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, { resolved?: string }> };
  for (const [name, one] of Object.entries(lock.packages)) assert.equal(one.resolved, undefined, name);
  assert.match(readFileSync(".npmrc", "utf8"), /ignore-scripts=true/);
});

type Tokens = Record<string, string>;

function tokens(css: string, from: string): Tokens {
  const start = css.indexOf("{", css.indexOf(from));
  const found: Tokens = {};
  for (const [, name = "", value = ""] of css.slice(start, css.indexOf("}", start)).matchAll(/--([\w-]+): (#[0-9a-f]{6})/g)) found[name] = value;
  return found;
}

function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255).map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, two: string): number {
  const [light = 0, dark = 0] = [luminance(one), luminance(two)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

test("every text can be read on every background", () => {
  const css = readFileSync("src/kernel/style.css", "utf8");
  const themes = [tokens(css, ":root {"), tokens(css, ':root[data-theme="dark"]')];
  assert.deepEqual(tokens(css, ':root[data-theme="system"]'), themes[1], "the system's dark theme is the dark theme");
  const grounds = ["bg", "side", "raised", "hover", "select", "current", "mark"];
  const texts = ["text", "muted", "accent", "danger", "warn", "ok", "info", "code-class", "code-symbol", "code-string", "code-number", "code-self", "code-comment"];
  for (const theme of themes) {
    for (const text of texts) {
      for (const ground of grounds) {
        const ratio = contrast(theme[text] ?? "", theme[ground] ?? "");
        assert.ok(ratio >= 4.5, `${text} on ${ground}: ${ratio.toFixed(2)}`);
      }
    }
    for (const [text, ground] of [["danger", "danger-bg"], ["warn", "warn-bg"], ["ok", "ok-bg"], ["info", "info-bg"], ["accent", "accent-bg"], ["on-accent", "accent"], ["text", "warn-bg"], ["text", "accent-bg"], ["muted", "danger-bg"]]) {
      const ratio = contrast(theme[text ?? ""] ?? "", theme[ground ?? ""] ?? "");
      assert.ok(ratio >= 4.5, `${text} on ${ground}: ${ratio.toFixed(2)}`);
    }
    for (const edge of ["control", "focus"]) {
      for (const ground of ["bg", "side", "raised", "hover"]) assert.ok(contrast(theme[edge] ?? "", theme[ground] ?? "") >= 3, `${edge} on ${ground}`);
    }
  }
});
