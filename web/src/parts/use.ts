// Asking the daemon from a component: again after a reconnect, never while nobody looks, the last answer wins.

import { useEffect, useRef, useState } from "preact/hooks";
import type { PaneId } from "../kernel/layout";
import { remember, states } from "../kernel/states";
import { epoch, fault, isOnline } from "../kernel/store";
import type { ErrorBody } from "../wire/protocol";

export interface Asked<Answer> {
  answer: Answer | null;
  error: ErrorBody | null;
  again: () => void;
}

/** The answer to a question that is asked again when `inputs` change or the connection came back. */
export function useAnswer<Answer>(ask: () => Promise<Answer> | null, inputs: unknown[], isVisible = true): Asked<Answer> {
  const [state, setState] = useState<{ answer: Answer | null; error: ErrorBody | null }>({ answer: null, error: null });
  const [turn, setTurn] = useState(0);
  const current = useRef(0);
  /** Whether an answer is awaited, and whether it will be too old when it comes. */
  const [isOpen, isOld] = [useRef(false), useRef(false)];
  useEffect(() => {
    if (!isVisible || !isOnline.value) return;
    const mine = ++current.current;
    const asked = ask();
    [isOpen.current, isOld.current] = [asked !== null, false];
    if (asked === null) return setState({ answer: null, error: null });
    const settle = (next: (old: { answer: Answer | null }) => { answer: Answer | null; error: ErrorBody | null }): void => {
      if (mine !== current.current) return;
      isOpen.current = false;
      setState(next);
      if (isOld.current) setTurn((old) => old + 1);
    };
    asked.then((answer) => settle(() => ({ answer, error: null })), (cause: unknown) => settle((old) => ({ answer: old.answer, error: fault(cause) })));
  }, [...inputs, turn, epoch.value, isOnline.value, isVisible]);
  // However often something happens, one question is open.
  return { ...state, again: () => { if (isOpen.current) isOld.current = true; else setTurn((old) => old + 1); } };
}

/** A text that is remembered with the layout: a filter, an order, what is selected. */
export function useKept(pane: PaneId, key: string, initial: string): [string, (next: string) => void] {
  return [states.value[pane]?.[key] ?? initial, (next) => remember(pane, key, next)];
}

/** Call something on every change of a signal-like value, not on the first. */
export function useLater(act: () => void, inputs: unknown[]): void {
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) isFirst.current = false;
    else act();
  }, inputs);
}

/** Once per second while it is seen and the page is not hidden. */
export function usePulse(act: () => void, isVisible: boolean, everyMs = 1000): void {
  const kept = useRef(act);
  kept.current = act;
  useEffect(() => {
    if (!isVisible) return;
    const timer = setInterval(() => {
      if (!document.hidden && isOnline.value) kept.current();
    }, everyMs);
    return () => clearInterval(timer);
  }, [isVisible, everyMs]);
}
