// A piece of a buffer as a document: a Markdown file whose code is checked like every other document's.

import { toast } from "../../kernel/notices";
import { go } from "../../kernel/routes";
import { client, fault, status } from "../../kernel/store";

/** The text of a document with one piece of code. The fence is longer than any in the code. */
export function document(title: string, code: string): string {
  const longest = Math.max(2, ...[...code.matchAll(/^\s*(`{3,})/gm)].map((found) => (found[1] ?? "").length));
  const fence = "`".repeat(longest + 1);
  return `# ${title}\n<!-- btnotebook -->\n\n${fence}beamtalk\n${code.replace(/\n*$/, "\n")}${fence}\n`;
}

/** Write it under a name that is free, and open it. */
export async function saveAsNotebook(buffer: string, code: string): Promise<void> {
  if (code.trim() === "") { status.value = "There is nothing to save"; return; }
  try {
    const { documents } = await client.request("doc-list", { limit: 1000 });
    const taken = new Set(documents.map((one) => one.path));
    let [path, number] = [`docs/${buffer}.md`, 2];
    while (taken.has(path)) [path, number] = [`docs/${buffer}-${number}.md`, number + 1];
    await client.request("doc-write", { path, text: document(buffer, code) });
    toast(`${path} written`);
    go("file", ...path.split("/"));
  } catch (cause) {
    status.value = fault(cause).message;
  }
}
