// A long list of which only what can be seen is in the document.

import type { AppActions, AppState } from "./app_state.js";
import { h, type Props, type VNode } from "./dom.js";
import { rowWindow } from "./virtual_rows.js";

export interface ListOptions<T> {
  /// Under which its place is remembered.
  name: string;
  rows: T[];
  rowPx: number;
  heightPx: number;
  props?: Props;
  render(row: T, index: number): VNode;
}

export function virtualList<T>(state: AppState, actions: AppActions, options: ListOptions<T>): VNode {
  const { rows, rowPx } = options;
  const heightPx = Math.min(options.heightPx, Math.max(rowPx, rows.length * rowPx) + 2);
  const top = Math.min(state.scrollTops.get(options.name) ?? 0, Math.max(0, rows.length * rowPx - heightPx));
  const shown = rowWindow(rows.length, rowPx, top, heightPx);
  const body = [];
  for (let index = shown.first; index < shown.end; ++index) body.push(options.render(rows[index]!, index));
  return h(
    "div",
    {
      ...options.props,
      key: options.name,
      class: `list ${String(options.props?.class ?? "")}`,
      style: { height: `${heightPx}px` },
      onscroll: (event: Event) => {
        const at = (event.currentTarget as Element).scrollTop;
        actions.change((changed) => changed.scrollTops.set(options.name, at));
      },
    },
    h("div", { key: "space above", class: "space", role: "presentation", style: { height: `${shown.topPx}px` } }),
    body,
    h("div", { key: "space below", class: "space", role: "presentation", style: { height: `${shown.bottomPx}px` } }),
  );
}
