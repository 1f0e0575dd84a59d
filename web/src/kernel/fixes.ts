// What mends a finding: the compiler's own fix where it is sure, else the name it proposes. Pure.

import type { Diagnostic } from "../wire/protocol";
import { placesOfBytes } from "./text";

export interface Change {
  from: number;
  to: number;
  insert: string;
}

export interface Fix {
  title: string;
  /** Places in the text that was checked. */
  changes: Change[];
}

/** The word that an error proposes, if it proposes one. */
export function proposal(text: string): string | null {
  return /[Dd]id you mean [`'"‘]?([^`'"’?\s]+)[`'"’]?\?/.exec(text)?.[1] ?? null;
}

export function fixOf(found: Diagnostic, text: string): Fix | null {
  if (found.fix !== undefined && found.fix.length > 0) {
    const places = placesOfBytes(text, found.fix.flatMap((edit) => [edit.start, edit.end]));
    return { title: "Fix", changes: found.fix.map((edit, at) => ({ from: places[2 * at] ?? 0, to: places[2 * at + 1] ?? 0, insert: edit.text })) };
  }
  const word = proposal(`${found.message} ${found.hint ?? ""}`);
  if (word === null || found.span_start === undefined || found.span_end === undefined) return null;
  const [from = 0, to = 0] = placesOfBytes(text, [found.span_start, found.span_end]);
  // A keyword message is several words; which of them is meant only a person can say.
  if (!/^(self\.)?\w+$/.test(text.slice(from, to)) || word.includes(":")) return null;
  return { title: `Did you mean '${word}'?`, changes: [{ from, to, insert: word }] };
}
