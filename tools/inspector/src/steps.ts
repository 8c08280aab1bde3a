// The steps that have been measured, in order.

import type { Step } from "./api.js";

/// A step that a recovery made again takes the place of its first time, and of those after it.
export function addSteps(steps: Step[], added: Step[], most: number): Step[] {
  if (added.length === 0) return steps;
  let keep = steps.length;
  while (keep > 0 && steps[keep - 1]!.step >= added[0]!.step) --keep;
  const all = steps.slice(0, keep).concat(added);
  return all.length > most ? all.slice(all.length - most) : all;
}

/// The steps that had been done at a time.
export function stepsUntil(steps: Step[], at_ms: number): Step[] {
  let end = steps.length;
  while (end > 0 && steps[end - 1]!.at_ms > at_ms) --end;
  return end === steps.length ? steps : steps.slice(0, end);
}

/// Samples per second up to each step, over the `window` newest: single steps may come together.
export function throughput(steps: Step[], window: number): number[] {
  let samples = 0;
  let seconds = 0;
  return steps.map((step, index) => {
    samples += step.num_samples;
    seconds += step.step_s;
    const gone = steps[index - window];
    if (gone) {
      samples -= gone.num_samples;
      seconds -= gone.step_s;
    }
    return seconds > 1e-9 ? samples / seconds : NaN;
  });
}

/// The part of a step's time in which devices did not compute; null: not known.
export function bubbleOf(step: Step): number | null {
  return step.span_s > 0 ? Math.max(0, 1 - step.busy_s / step.span_s) : null;
}
