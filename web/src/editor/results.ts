// Results below the inputs they came from: block widgets that move with the text.

import { StateEffect, StateField, type Extension, type Range } from "@codemirror/state";
import { Decoration, EditorView, WidgetType, type DecorationSet } from "@codemirror/view";

class ResultWidget extends WidgetType {
  constructor(readonly id: string, readonly element: HTMLElement) {
    super();
  }
  override eq(other: ResultWidget): boolean {
    return other.id === this.id;
  }
  toDOM(): HTMLElement {
    return this.element;
  }
  override ignoreEvent(): boolean {
    return true;
  }
}

/** Results that stay when their input is evaluated again. */
export const pinned = new Set<string>();

export const addResult = StateEffect.define<{ id: string; at: number; element: HTMLElement }>({
  map: (value, changes) => ({ ...value, at: changes.mapPos(value.at, 1) }),
});
export const dropResults = StateEffect.define<(id: string) => boolean>();

const field = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(found, transaction) {
    let next = found.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(dropResults)) next = next.update({ filter: (_from, _to, value) => !effect.value((value.spec.widget as ResultWidget).id) });
      if (effect.is(addResult)) {
        const { id, element } = effect.value;
        const line = transaction.state.doc.lineAt(Math.min(effect.value.at, transaction.state.doc.length));
        const added: Range<Decoration> = Decoration.widget({ widget: new ResultWidget(id, element), block: true, side: 1 }).range(line.to);
        // One input has one result: a new one takes the place of the old.
        next = next.update({ filter: (from, _to, value) => from !== line.to || (value.spec.widget as ResultWidget).id === id || pinned.has((value.spec.widget as ResultWidget).id), add: [added], sort: true });
      }
    }
    return next;
  },
  provide: (one) => EditorView.decorations.from(one),
});

export const results: Extension = field;

/** Where each result is now. */
export function resultPlaces(view: EditorView): Map<string, number> {
  const places = new Map<string, number>();
  view.state.field(field).between(0, view.state.doc.length, (from, _to, value) => {
    places.set((value.spec.widget as ResultWidget).id, from);
  });
  return places;
}
