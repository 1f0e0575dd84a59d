// Words for a person: successes that go by themselves, announcements for a screen reader, questions before something
// is lost.

import { signal } from "@preact/signals";

export const toasts = signal<{ id: number; text: string }[]>([]);
let next = 1;

export function toast(text: string): void {
  const id = next++;
  toasts.value = [{ id, text }];
  setTimeout(() => {
    toasts.value = toasts.value.filter((one) => one.id !== id);
  }, 4000);
}

export const spoken = signal("");
export const alarmed = signal("");
let waiting: string[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;

/** At most one announcement in two seconds; what comes between is joined. */
export function announce(text: string): void {
  waiting.push(text);
  if (timer !== undefined) return;
  spoken.value = waiting.join(". ");
  waiting = [];
  timer = setTimeout(() => {
    timer = undefined;
    if (waiting.length > 0) announce(waiting.splice(0).join(". "));
  }, 2000);
}

export function alarm(text: string): void {
  alarmed.value = text;
}

export interface Question {
  title: string;
  text: string;
  /** What the button says that does it. */
  act: string;
  /** To be typed before the button works. */
  typed?: string;
  isDestructive: boolean;
  answer: (isYes: boolean) => void;
}

export const question = signal<Question | null>(null);

export function ask(title: string, text: string, act: string, more: { typed?: string; isDestructive?: boolean } = {}): Promise<boolean> {
  return new Promise((resolve) => {
    question.value = {
      title, text, act, isDestructive: more.isDestructive ?? true,
      ...(more.typed === undefined ? {} : { typed: more.typed }),
      answer: (isYes) => {
        question.value = null;
        resolve(isYes);
      },
    };
  });
}

/** A page to read, as it is written or as Markdown: what a code stands for. */
export const page = signal<{ title: string; text: string; isMarkdown?: boolean } | null>(null);
