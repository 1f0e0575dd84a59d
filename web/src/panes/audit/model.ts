// What of the trail is missing, in words. Pure.

import { grouped } from "../../kernel/text";

/** Numbers that are nowhere: between records that are shown, else before those the daemon names. */
export function gapsOf(seqs: readonly number[], before: readonly number[]): string[] {
  return before.map((seq) => {
    const last = seqs.filter((one) => one < seq).reduce((most, one) => Math.max(most, one), 0);
    if (last === 0) return `records before ${grouped(seq)} are missing`;
    return last + 1 === seq - 1 ? `seq ${grouped(seq - 1)} is missing` : `seq ${grouped(last + 1)}–${grouped(seq - 1)} are missing`;
  });
}
