// A timeline as bars in pixels.

import type { Timeline } from "./api.js";
import { kindOf, parseActions } from "./actions.js";
import type { DeviceIdle } from "./idle_time.js";

export interface Bar {
  x: number;
  width: number;
  /// "forward", "backward", "weights", "other" or a reason of idle time.
  kind: string;
  /// What fits into the bar, its microbatch; else empty.
  label: string;
  /// What a reader is told who points at it.
  title: string;
}

/// The least width of a bar that shows this label.
const labelledPx = (label: string) => Math.max(12, label.length * 6.5 + 3);

interface Piece {
  begin: number;
  end: number;
  kind: string;
  label: string;
  title: string;
}

/// Bars narrower than `leastPx` are joined with those beside them, so that no row has more than its width allows.
export function barsOf(pieces: Piece[], pxPerUnit: number, leastPx = 1.5): Bar[] {
  const bars: Bar[] = [];
  let joined: { bar: Bar; count: number } | null = null;
  for (const piece of pieces) {
    const x = piece.begin * pxPerUnit;
    const width = (piece.end - piece.begin) * pxPerUnit;
    if (width <= 0) continue;
    if (width >= leastPx) {
      joined = null;
      bars.push({ x, width, kind: piece.kind, label: width >= labelledPx(piece.label) ? piece.label : "", title: piece.title });
      continue;
    }
    if (joined && x + width - joined.bar.x <= 2 * leastPx) {
      joined.bar.width = x + width - joined.bar.x;
      joined.bar.title = `${++joined.count} short pieces`;
      continue;
    }
    joined = { bar: { x, width: Math.max(width, leastPx / 2), kind: piece.kind, label: "", title: piece.title }, count: 1 };
    bars.push(joined.bar);
  }
  return bars;
}

export function actionBars(timeline: Timeline, device: number, pxPerUnit: number, describe: (text: string, length: number) => string): Bar[] {
  const pieces = (timeline.devices[device] ?? []).map((one) => ({
    begin: one.begin,
    end: one.end,
    kind: kindOf(one.action),
    label: parseActions(one.action).map((action) => (action.microbatch === null ? action.kind : String(action.microbatch))).join(" "),
    title: describe(one.action, one.end - one.begin),
  }));
  return barsOf(pieces, pxPerUnit);
}

export function idleBars(idle: DeviceIdle, pxPerUnit: number, describe: (reason: string, length: number) => string): Bar[] {
  return barsOf(
    idle.spans.map((span) => ({ begin: span.begin, end: span.end, kind: span.reason, label: "", title: describe(span.reason, span.end - span.begin) })),
    pxPerUnit,
  );
}

/// Round numbers from 0 to `span`, about one in `spacePx` pixels.
export function ticks(span: number, widthPx: number, spacePx = 90): number[] {
  if (!(span > 0) || !(widthPx > 0)) return [0];
  const rough = span / Math.max(1, Math.floor(widthPx / spacePx));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999) ?? 10 * power;
  const found: number[] = [];
  for (let index = 0; index * step <= span * 1.0001; ++index) found.push(index * step);
  return found;
}
