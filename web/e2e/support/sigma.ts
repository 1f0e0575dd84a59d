// Texts that would do something if anything took them for markup, code, terminal orders or direction.

export const SIGMA: Record<string, string> = {
  image: "<img src=x onerror=pwned=1>",
  script: "<script>pwned=1</script>",
  svg: "\"><svg onload=pwned=1>",
  link: "javascript:pwned=1",
  frame: "</textarea><iframe srcdoc=\"<script>parent.pwned=1</script>\">",
  template: "{{constructor.constructor('pwned=1')()}}",
  turned: "abc\u202edef\u200b",
  nul: "a\u0000b",
  surrogate: "a\ud83dz",
  terminal: "\u001b]8;;javascript:pwned=1\u0007click\u001b]8;;\u0007\u001b]52;c;cHduZWQ=\u0007\u001b]0;title\u0007\u001b[c",
};

/** A Beamtalk string with this text. */
export function quoted(text: string): string {
  const escaped = text.replaceAll(/[\\"{}]/g, (one) => `\\${one}`);
  return `"${escaped}"`;
}

/** A Beamtalk symbol with this text. */
export function symbol(text: string): string {
  return `#'${text.replaceAll("'", "")}'`;
}
