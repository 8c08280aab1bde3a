// What happened, newest first.

import type { AppActions, AppState } from "../app_state.js";
import { h, type Child } from "../dom.js";
import { formatClock } from "../format.js";
import { filterEvents } from "../job_events.js";
import { virtualList } from "../virtual_list.js";
import { nothingYet } from "./pieces.js";

/// On a phone an event has two lines.
const rowPxOf = (widthPx: number) => (widthPx < 600 ? 46 : 26);

export function eventsView(state: AppState, actions: AppActions): Child {
  const frame = state.frame!;
  const rowPx = rowPxOf(state.widthPx);
  const kinds = [...new Set(state.events.map((one) => one.kind))].sort();
  const rows = filterEvents(state.events, { hidden: state.hiddenKinds, text: state.eventFilter }, state.isLive ? Infinity : frame.at_ms);
  return [
    h(
      "div", { class: "bar-of-view", key: "bar" },
      h("label", null, "Filter ", h("input", {
        type: "search", id: "filter", value: state.eventFilter, placeholder: "rank 2",
        oninput: (event: Event) => { const text = (event.currentTarget as HTMLInputElement).value; actions.change((changed) => { changed.eventFilter = text; }); },
      })),
      h("fieldset", { class: "kinds" }, h("legend", { class: "unseen" }, "kinds of events"), kinds.map((kind) =>
        h("label", { key: kind }, h("input", {
          type: "checkbox", checked: !state.hiddenKinds.has(kind),
          onchange: () => actions.change((changed) => { if (!changed.hiddenKinds.delete(kind)) changed.hiddenKinds.add(kind); }),
        }), kind.replaceAll("_", " ")))),
      h("span", { class: "note" }, `${rows.length} of ${state.events.length}`),
    ),
    rows.length === 0
      ? nothingYet("No event is shown.")
      : virtualList(state, actions, {
          name: "events", rows, rowPx, heightPx: Math.max(240, state.heightPx - 260), props: { role: "list", tabindex: "0", "aria-label": "events" },
          render: (row) => h("div", { key: row.key, class: `row event ${row.level}`, role: "listitem", style: { height: `${rowPx}px` }, title: row.text },
            h("time", null, formatClock(row.at_ms)), h("span", { class: "event-kind" }, row.kind.replaceAll("_", " ")), h("span", { class: "event-text" }, row.text)),
        }),
  ];
}
