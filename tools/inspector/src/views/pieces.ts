// Small pieces that several views are made of.

import { h, type Child, type VNode } from "../dom.js";
import { formatNumber } from "../format.js";
import { pathOf, roundLogTicks, roundTicks, scaleOf, thinOut, type Point } from "../series.js";

const goodStates = new Set(["running", "active", "computing", "applying", "copying_state", "open"]);
const badStates = new Set(["lost", "ended", "unreachable", "refused"]);

/// A word for a state, with a colour that repeats what the word says.
export function pill(state: string, colour: "good" | "between" | "bad" | null = null): VNode {
  const kind = colour ?? (goodStates.has(state) ? "good" : badStates.has(state) ? "bad" : "between");
  return h("span", { class: `pill ${kind}` }, state.replaceAll("_", " "));
}

export function card(title: string, ...children: Child[]): VNode {
  return h("section", { class: "card", key: title, "aria-label": title }, h("h2", null, title), children);
}

/// Name and value in two columns; values that are null are left out.
export function facts(pairs: [string, Child][]): VNode {
  return h(
    "dl", { class: "facts" },
    pairs.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => h("div", { key: name }, h("dt", null, name), h("dd", null, value))),
  );
}

export function table(name: string, heads: string[], rows: { key: string; cells: Child[] }[]): VNode {
  return h(
    "div", { class: "scroll-x", key: name },
    h(
      "table", { "aria-label": name },
      h("thead", null, h("tr", null, heads.map((head) => h("th", { scope: "col", key: head }, head)))),
      h("tbody", null, rows.map((row) => h("tr", { key: row.key }, row.cells.map((cell) => h("td", null, cell))))),
    ),
  );
}

export interface ChartOptions {
  fromZero: boolean;
  heightPx?: number;
  /// The values are logarithms to base 10 (series.ts, toLog).
  isLog?: boolean;
  format?: (value: number) => string;
  /// Drawn behind, paler: the values that `points` were made from.
  behind?: Point[];
}

/// A curve over steps, with a labelled axis on each side. The labels are text beside the picture, which is stretched.
export function chart(name: string, points: Point[], options: ChartOptions): VNode {
  if (points.length === 0) return h("p", { class: "nothing", key: name }, "no step yet");
  const width = 300;
  const height = options.heightPx ?? 80;
  const behind = thinOut(options.behind ?? [], 300);
  const thin = thinOut(points, 300);
  const scale = scaleOf([...thin, ...behind].map((one) => one.y), options.fromZero);
  const format = options.format ?? ((value: number) => formatNumber(value));
  const first = points[0]!.x;
  const last = points[points.length - 1]!.x;
  const topOf = (value: number) => 1 - (value - scale.least) / (scale.greatest - scale.least);
  const leftOf = (step: number) => (step - first) / (last - first);
  const values = (options.isLog ? roundLogTicks : roundTicks)(scale, Math.max(2, Math.floor(height / 24)));
  const steps = roundTicks({ least: first, greatest: last }, 4).filter(Number.isInteger);
  const percent = (part: number) => `${(part * 100).toFixed(1)}%`;
  const line = (shown: Point[], kind: string) => h("path", { class: kind, d: pathOf(shown, width, height, scale), "vector-effect": "non-scaling-stroke" });
  const rule = (key: string, from: [number, number], to: [number, number]) => h("line", { key, x1: from[0].toFixed(1), y1: from[1].toFixed(1), x2: to[0].toFixed(1), y2: to[1].toFixed(1), "vector-effect": "non-scaling-stroke" });
  return h(
    "div", { class: "chart", key: name },
    h("div", { class: "chart-values", style: { height: `${height}px` }, "aria-hidden": "true" }, values.map((one) => h("span", { key: String(one), style: { top: percent(topOf(one)) } }, format(options.isLog ? 10 ** one : one)))),
    h(
      "svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": name, style: { height: `${height}px` } },
      values.map((one) => rule(`value ${one}`, [0, topOf(one) * height], [width, topOf(one) * height])),
      steps.map((one) => rule(`step ${one}`, [leftOf(one) * width, 0], [leftOf(one) * width, height])),
      behind.length > 0 ? line(behind, "behind") : null,
      line(thin, "line"),
    ),
    h("div", { class: "chart-steps", "aria-hidden": "true" }, steps.map((one) => h("span", { key: String(one), style: { left: percent(leftOf(one)) } }, formatNumber(one)))),
  );
}

export function button(label: string, onclick: () => void, more: Record<string, unknown> = {}): VNode {
  return h("button", { type: "button", key: label, onclick, ...more }, label);
}

export function nothingYet(text: string): VNode {
  return h("p", { class: "nothing" }, text);
}
