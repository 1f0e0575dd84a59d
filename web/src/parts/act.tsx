// A button that changes something: observers have none, and nobody has one while the daemon or the image cannot hear it.

import type { ComponentChildren, JSX } from "preact";
import { go } from "../kernel/routes";
import { insertion, isFrozen, isOwner } from "../kernel/store";

interface Props {
  onClick: () => void;
  kind?: "plain" | "primary" | "link" | "chip" | "bare";
  disabled?: boolean;
  title?: string;
  label?: string;
  children: ComponentChildren;
}

export function Act({ onClick, kind = "plain", disabled = false, title, label, children }: Props): JSX.Element | null {
  if (!isOwner.value) return null;
  return <button type="button" class={kind} disabled={disabled || isFrozen.value} {...(title === undefined ? {} : { title })} {...(label === undefined ? {} : { "aria-label": label })} onClick={onClick}>{children}</button>;
}

/** Code to try: pressed it stands in the Workspace, for whoever has one. */
export function Try({ code }: { code: string }): JSX.Element {
  if (!isOwner.value) return <code>{code}</code>;
  return <button type="button" class="link code" title="into the text of the Workspace" onClick={() => { insertion.value = code; go("workspace"); }}>{code}</button>;
}
