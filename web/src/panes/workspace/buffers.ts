// The texts of the Workspace: which there are, and the one that is shown.

import { signal } from "@preact/signals";
import { forget, kept } from "../../kernel/desk";
import { ask, toast } from "../../kernel/notices";
import { note } from "../../kernel/routes";

export const buffer = signal("main");
export const buffers = signal<string[]>(["main"]);

export function openBuffer(name: string): void {
  buffer.value = name;
  note("workspace", ...(name === "main" ? [] : [name]));
}

export async function removeBuffer(name: string): Promise<void> {
  const text = kept(`scratch/${name}`) ?? "";
  if (text !== "" && !(await ask(`Remove the buffer ${name}?`, `Its text of ${text.split("\n").length} lines is forgotten.`, "Remove"))) return;
  openBuffer("main");
  buffers.value = buffers.value.filter((one) => one !== name);
  forget(`scratch/${name}`);
}

export function newBuffer(): void {
  const taken = new Set(buffers.value);
  if (taken.size >= 50) return toast("50 buffers are the most");
  let number = 2;
  while (taken.has(`buffer-${number}`)) number += 1;
  buffers.value = [...buffers.value, `buffer-${number}`];
  openBuffer(`buffer-${number}`);
}
