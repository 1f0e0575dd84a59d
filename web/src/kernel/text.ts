// Text as a person reads it: nothing invisible hides, and no number needs counting.

/** Control characters, zero-width characters and those that turn the direction of text. */
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** The same text with hidden characters shown as code points. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (one) => `⟨U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

const whole = new Intl.NumberFormat("en-US");

export function count(number: number, noun: string): string {
  return `${whole.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

export function grouped(number: number): string {
  return whole.format(number);
}

export function bytes(number: number): string {
  const units = ["B", "KB", "MB", "GB"];
  let [size, unit] = [number, 0];
  while (size >= 1000 && unit < units.length - 1) [size, unit] = [size / 1000, unit + 1];
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}

export function duration(ms: number): string {
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

export function clock(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB");
}

/** How long ago, in the largest unit that fits. */
export function age(seconds: number): string {
  if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** Byte offset in UTF-8 of a place in a text, and back: the daemon counts bytes, the page UTF-16 units. */
export function byteOffset(text: string, place: number): number {
  return new TextEncoder().encode(text.slice(0, place)).length;
}

export function placeOfByte(text: string, offset: number): number {
  let bytes = 0;
  for (let place = 0; place < text.length; ) {
    if (bytes >= offset) return place;
    const code = text.codePointAt(place) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    place += code > 0xffff ? 2 : 1;
  }
  return text.length;
}

/** The same for many offsets at once, in the order they were given. */
export function placesOfBytes(text: string, offsets: readonly number[]): number[] {
  const places = new Array<number>(offsets.length).fill(text.length);
  let [bytes, place] = [0, 0];
  for (const [offset, at] of offsets.map((one, index): [number, number] => [one, index]).sort((one, two) => one[0] - two[0])) {
    while (place < text.length && bytes < offset) {
      const code = text.codePointAt(place) ?? 0;
      bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      place += code > 0xffff ? 2 : 1;
    }
    places[at] = place;
  }
  return places;
}

export async function sha256(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (one) => one.toString(16).padStart(2, "0")).join("");
}

/** How well a text answers what was typed: a subsequence, word starts first; null is no match. */
export function match(typed: string, text: string): number | null {
  if (typed === "") return 0;
  const [wanted, found] = [typed.toLowerCase(), text.toLowerCase()];
  const at = found.indexOf(wanted);
  if (at === 0) return 1000 - text.length;
  if (at > 0) return 500 - at - text.length / 10;
  let [score, place] = [0, 0];
  for (const letter of wanted) {
    const next = found.indexOf(letter, place);
    if (next < 0) return null;
    const isStart = next === 0 || /[^a-z0-9]/.test(found[next - 1] ?? "") || /[A-Z]/.test(text[next] ?? "");
    score += isStart ? 10 : next === place ? 4 : 1;
    place = next + 1;
  }
  return score - text.length / 10;
}
