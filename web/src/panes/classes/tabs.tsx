// What else there is to see of a class: its definition, comment, generated code, and who sends or has a message.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { surface } from "../../editor/surface";
import { go } from "../../kernel/routes";
import { client } from "../../kernel/store";
import { visible } from "../../kernel/text";
import { Act } from "../../parts/act";
import { Problem } from "../../parts/fault";
import { List } from "../../parts/list";
import { Markdown } from "../../parts/markdown";
import { useAnswer } from "../../parts/use";
import type { Site } from "../../wire/protocol";
import { siteText } from "./model";
import { changes } from "./state";

export function Definition({ className, isVisible, onRemove }: { className: string; isVisible: boolean; onRemove: () => void }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { answer, error, again } = useAnswer(() => client.request("browse-class-definition", { class: className }), [className, changes.value], isVisible);
  useEffect(() => {
    if (box.current === null || answer === null) return;
    const view = surface({ parent: box.current, text: answer.definition, label: `Definition of ${className}`, isReadOnly: true });
    return () => view.destroy();
  }, [answer?.definition]);
  return (
    <div class="below">
      <div class="bar"><span class="code cut">{visible(className)}</span><span class="right"><button class="plain" title={`who names ${className}`} onClick={() => go("references", className)}>References</button><Act onClick={onRemove}>Remove class…</Act></span></div>
      <Problem error={error} onDismiss={again} />
      <div class="surface" ref={box} />
    </div>
  );
}

export function Comment({ className, isVisible }: { className: string; isVisible: boolean }): JSX.Element {
  const { answer, error, again } = useAnswer(() => client.request("docs", { class: className }), [className, changes.value], isVisible);
  return <div class="below"><Problem error={error} onDismiss={again} /><div class="scroll">{answer === null ? null : <Markdown text={answer.docs} />}</div></div>;
}

export function Sites({ kind, name, isVisible }: { kind: "senders" | "implementors" | "references"; name: string; isVisible: boolean }): JSX.Element {
  const [selected, select] = useState<string | null>(null);
  const question = kind === "references" ? { kind, class: name } : { kind, selector: name };
  const { answer, error, again } = useAnswer(() => client.request("nav-query", question), [kind, name, changes.value], isVisible);
  const open = (site: Site): void => go("class", site.class_side ? `${site.class}.class` : site.class, ...(site.method === null ? [] : [site.method]));
  const keyOf = (site: Site, at: number): string => `${siteText(site)}-${site.line ?? ""}-${at}`;
  return (
    <div class="below">
      <Problem error={error} onDismiss={again} />
      {answer !== null && answer.sites.length === 0 ? <div class="empty">No {kind} of {visible(name)}.</div> : (
        <List label={`${kind} of ${name}`} items={answer?.sites ?? []} keyOf={keyOf} selected={selected} onSelect={(site, at) => select(keyOf(site, at))} onOpen={open} row={(site) => (
          <><span class="code cut">{visible(siteText(site))}</span><span class="muted right cut">{visible(site.source_file ?? "")}{site.line === null ? "" : `:${site.line}`}</span></>
        )} />
      )}
    </div>
  );
}

/** What the compiler makes of a method, or of all of a class; of a class in Erlang, its Erlang. */
export function Generated({ className, selector, isVisible }: { className: string; selector: string | null; isVisible: boolean }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const { answer, error, again } = useAnswer(async () => {
    try {
      return (await client.request("show-codegen", { class: className, ...(selector === null ? {} : { selector }) })).erlang ?? "";
    } catch (cause) {
      const native = await client.request("browse-native-source", { class: className }).catch(() => null);
      if (native === null) throw cause;
      return native.source;
    }
  }, [className, selector, changes.value], isVisible);
  useEffect(() => {
    if (box.current === null || answer === null) return;
    const view = surface({ parent: box.current, text: answer, label: `Generated code of ${className}`, isReadOnly: true });
    return () => view.destroy();
  }, [answer]);
  return <div class="below"><Problem error={error} onDismiss={again} /><div class="surface" ref={box} /></div>;
}
