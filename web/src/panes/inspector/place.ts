// Targets as the daemon wants them.

import type { Target } from "../../kernel/inspect";
import type { Place } from "../../views/view";
import type { Step } from "../../wire/protocol";

export function placeOf(target: Target, steps: readonly Step[]): Place {
  return { ...target, path: [...steps] };
}
