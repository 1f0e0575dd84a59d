// Markdown on the screen: elements made of data, never of markup.

import type { ComponentChildren, JSX } from "preact";
import { blocks, targetOf, type Block, type Inline } from "../kernel/markdown";
import { go, parse } from "../kernel/routes";
import { visible } from "../kernel/text";

export function Markdown({ text }: { text: string }): JSX.Element {
  return <div class="prose">{blocks(text).map(block)}</div>;
}

function block(one: Block, at: number): JSX.Element {
  switch (one.is) {
    case "heading": {
      // The pane has a heading of its own above these.
      const Tag = `h${Math.min(6, one.level + 2)}` as "h3" | "h4" | "h5" | "h6";
      return <Tag key={at} class={`level-${Math.min(3, one.level)}`}>{pieces(one.of)}</Tag>;
    }
    case "paragraph": return <p key={at}>{pieces(one.of)}</p>;
    case "code": return <pre key={at} class="code">{visible(one.text)}</pre>;
    case "rule": return <hr key={at} />;
    case "quote": return <blockquote key={at}>{one.of.map(block)}</blockquote>;
    case "list": {
      const items = one.items.map((item, number) => <li key={number}>{item.length === 1 && item[0]?.is === "paragraph" ? pieces(item[0].of) : item.map(block)}</li>);
      return one.isOrdered ? <ol key={at} start={one.start}>{items}</ol> : <ul key={at}>{items}</ul>;
    }
    case "table": return (
      <div key={at} class="table">
        <table>
          <thead><tr>{one.head.map((cell, number) => <th key={number}>{pieces(cell)}</th>)}</tr></thead>
          <tbody>{one.rows.map((row, number) => <tr key={number}>{row.map((cell, place) => <td key={place}>{pieces(cell)}</td>)}</tr>)}</tbody>
        </table>
      </div>
    );
  }
}

function pieces(all: readonly Inline[]): ComponentChildren {
  return all.map((one, at) => {
    switch (one.is) {
      case "text": return visible(one.text);
      case "code": return <code key={at}>{visible(one.text)}</code>;
      case "strong": return <strong key={at}>{pieces(one.of)}</strong>;
      case "emphasis": return <em key={at}>{pieces(one.of)}</em>;
      case "break": return <br key={at} />;
      case "link": return <Link key={at} to={one.to}>{pieces(one.of)}</Link>;
    }
  });
}

function Link({ to, children }: { to: string; children: ComponentChildren }): JSX.Element {
  const target = targetOf(to);
  if (target === null) return <span>{children} <code>{visible(to)}</code></span>;
  if (target.is === "outside") return <span><a href={target.to} target="_blank" rel="noopener noreferrer">{children}</a> <span class="muted">({visible(target.host)})</span></span>;
  const open = (): void => {
    if (target.is === "file") go("file", ...target.path.split("/"));
    else go(...(parse(target.to)?.parts ?? []));
  };
  return <button type="button" class="link" title={visible(to)} onClick={open}>{children}</button>;
}
