// A button that changes something: observers have none, and nobody has one while the daemon or the image cannot hear it.

import type { ComponentChildren, JSX } from "preact";
import { isFrozen, isOwner } from "../kernel/store";

interface Props {
  onClick: () => void;
  kind?: "plain" | "primary" | "link" | "chip";
  disabled?: boolean;
  title?: string;
  label?: string;
  children: ComponentChildren;
}

export function Act({ onClick, kind = "plain", disabled = false, title, label, children }: Props): JSX.Element | null {
  if (!isOwner.value) return null;
  return <button type="button" class={kind} disabled={disabled || isFrozen.value} {...(title === undefined ? {} : { title })} {...(label === undefined ? {} : { "aria-label": label })} onClick={onClick}>{children}</button>;
}
