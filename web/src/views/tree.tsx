// A tree whose branches are asked for when they are opened.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { client, fault } from "../kernel/store";
import { visible } from "../kernel/text";
import { Problem } from "../parts/fault";
import { List } from "../parts/list";
import type { ErrorBody, Opened, ShownView, ViewNode } from "../wire/protocol";
import { flat, type Below } from "./model";
import type { Place } from "./view";

export function Tree({ place, name, view, onOpen }: { place: Place; name: string; view: ShownView; onOpen: (target: Opened) => void }): JSX.Element {
  const [below, setBelow] = useState<Below>(new Map());
  const [selected, select] = useState<string | null>(null);
  const [error, setError] = useState<ErrorBody | null>(null);
  useEffect(() => setBelow(new Map()), [view.id]);
  const toggle = (node: ViewNode, isOpen: boolean): void => {
    if (!isOpen) return setBelow((old) => new Map([...old].filter(([key]) => key !== node.node)));
    client.request("view", { ...place, name, node: node.node, count: 500 }).then(
      (answer) => setBelow((old) => new Map(old).set(node.node, answer.view.nodes ?? [])),
      (cause: unknown) => setError(fault(cause)),
    );
  };
  return (
    <>
      <Problem error={error} onDismiss={() => setError(null)} />
      <List
        label={view.title} role="tree" items={flat(view.nodes ?? [], below)} keyOf={({ node }) => node.node} selected={selected}
        onSelect={({ node }) => select(node.node)} onOpen={({ node }) => { if (node.open !== null) onOpen(node.open); }}
        level={({ node, level }) => (node.has_children ? { level, isOpen: below.has(node.node) } : { level })} onToggle={({ node }, isOpen) => toggle(node, isOpen)}
        row={({ node }) => <><span class="muted twist" aria-hidden="true">{node.has_children ? (below.has(node.node) ? "▾" : "▸") : " "}</span><span class="code cut grow">{visible(node.text).slice(0, 300)}</span>{node.class === null ? null : <span class="chip">{visible(node.class)}</span>}</>}
      />
    </>
  );
}
