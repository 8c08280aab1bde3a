// Small pieces that several views are made of.

import { h, type Child, type VNode } from "../dom.js";
import { pathOf, scaleOf, thinOut, type Point } from "../series.js";

const goodStates = new Set(["running", "active", "computing", "applying", "open"]);
const badStates = new Set(["lost", "ended", "unreachable", "refused"]);

/// A word for a state, with a colour that repeats what the word says.
export function pill(state: string): VNode {
  const kind = goodStates.has(state) ? "good" : badStates.has(state) ? "bad" : "between";
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

export function curve(name: string, points: Point[], fromZero: boolean): VNode {
  const width = 300;
  const height = 64;
  const thin = thinOut(points, 300);
  const scale = scaleOf(thin.map((one) => one.y), fromZero);
  return h(
    "svg", { class: "curve", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": name },
    h("path", { d: pathOf(thin, width, height, scale), "vector-effect": "non-scaling-stroke" }),
  );
}

export function button(label: string, onclick: () => void, more: Record<string, unknown> = {}): VNode {
  return h("button", { type: "button", key: label, onclick, ...more }, label);
}

export function nothingYet(text: string): VNode {
  return h("p", { class: "nothing" }, text);
}
