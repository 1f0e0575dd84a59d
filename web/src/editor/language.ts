// Beamtalk for the eye: tokens, not a parser. What an input is and what is wrong with it is the daemon's to say.

import { HighlightStyle, StreamLanguage, syntaxHighlighting, type StringStream } from "@codemirror/language";
import { tags } from "@lezer/highlight";

interface State {
  /** How deep in a string with `{…}` parts, and whether inside one. */
  inString: boolean;
  depth: number[];
}

const WORDS = /^(self|super|nil|true|false)$/;

export function token(stream: StringStream, state: State): string | null {
  if (state.inString) return string(stream, state);
  if (stream.eatSpace()) return null;
  if (stream.match("//")) {
    stream.skipToEnd();
    return "comment";
  }
  if (stream.match('"')) {
    state.inString = true;
    return string(stream, state);
  }
  if (stream.match(/#(?:'[^']*'|[A-Za-z_][\w:]*|[-+*/<>=~@%&?,|\\!]+)/)) return "atom";
  if (stream.match(/\$(?:\\.|.)/u)) return "string";
  if (stream.match(/(?:\d+r[0-9A-Za-z]+|\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?)/)) return "number";
  if (stream.match(/[A-Z]\w*/)) return "typeName";
  if (stream.match(/[a-z_]\w*:(?!=)/)) return "propertyName";
  const word = stream.match(/[a-z_]\w*/) as RegExpMatchArray | null;
  if (word !== null) return WORDS.test(word[0]) ? "keyword" : null;
  if (stream.match(":=") || stream.match("=>") || stream.match("^")) return "operator";
  const depth = state.depth;
  if (depth.length > 0) {
    const last = depth.length - 1;
    if (stream.match("{")) depth[last] = (depth[last] ?? 0) + 1;
    else if (stream.match("}")) {
      if (depth[last] === 0) {
        depth.pop();
        state.inString = true;
        return "string";
      }
      depth[last] = (depth[last] ?? 1) - 1;
    } else stream.next();
    return null;
  }
  stream.next();
  return null;
}

function string(stream: StringStream, state: State): string {
  while (!stream.eol()) {
    const next = stream.next();
    if (next === "\\") stream.next();
    else if (next === '"') {
      if (stream.match('"')) continue;
      state.inString = false;
      break;
    } else if (next === "{") {
      state.inString = false;
      state.depth.push(0);
      break;
    }
  }
  return "string";
}

export const beamtalk = StreamLanguage.define<State>({
  name: "beamtalk",
  startState: () => ({ inString: false, depth: [] }),
  copyState: (state) => ({ inString: state.inString, depth: [...state.depth] }),
  token,
  languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"'] } },
});

export const colours = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.typeName, color: "var(--code-class)" },
    { tag: tags.atom, color: "var(--code-symbol)" },
    { tag: tags.string, color: "var(--code-string)" },
    { tag: tags.number, color: "var(--code-number)" },
    { tag: tags.keyword, color: "var(--code-self)", fontWeight: "600" },
    { tag: tags.comment, color: "var(--code-comment)" },
  ]),
);
