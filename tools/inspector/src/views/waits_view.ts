// Why is it waiting: the chain from a device to the culprit.

import type { AppActions, AppState } from "../app_state.js";
import type { Device } from "../api.js";
import { h, type Child } from "../dom.js";
import { formatNumber, formatSeconds } from "../format.js";
import { virtualList } from "../virtual_list.js";
import { waitChain, type WaitLink } from "../wait_chain.js";
import { button, card, nothingYet, pill } from "./pieces.js";

/// On a phone a device has two lines.
const rowPxOf = (widthPx: number) => (widthPx < 600 ? 60 : 34);

/// The device that the address names, or the one that has waited for longest.
function startOf(state: AppState): number | null {
  const { devices } = state.frame!;
  if (/^\d+$/.test(state.route.of)) return Number(state.route.of);
  let longest: Device | null = null;
  for (const one of devices) if (one.activity.startsWith("waiting") && (!longest || one.at_position_s > longest.at_position_s)) longest = one;
  return (longest ?? devices[0])?.device ?? null;
}

function linkView(link: WaitLink, index: number, actions: AppActions): Child {
  return h(
    "li", { key: String(index), class: link.isCulprit ? "culprit" : "" },
    h("span", { class: "chain-text" }, link.text),
    link.for_s === null ? null : h("span", { class: "note" }, `for ${formatSeconds(link.for_s)}`),
    link.isCulprit ? h("strong", null, "the reason") : null,
    link.rank === null ? null : button("Show its process", () => { actions.change((changed) => { changed.treeFilter = `rank ${link.rank}`; }); actions.go("tree"); }),
  );
}

function rowView(one: Device, start: number | null, rowPx: number, actions: AppActions): ReturnType<typeof h> {
  return h(
    "div", { key: String(one.device), class: "row wraps", role: "listitem", style: { height: `${rowPx}px` } },
    button(`device ${one.device}`, () => actions.go("waits", String(one.device)), { "aria-current": one.device === start ? "true" : null }),
    h("span", { class: "note" }, `rank ${one.rank}`), pill(one.activity), h("span", { class: "row-name" }, one.action ?? ""),
    h("span", { class: "note" }, `run ${formatNumber(one.run)}, for ${formatSeconds(one.at_position_s)}`),
  );
}

export function waitsView(state: AppState, actions: AppActions): Child {
  const frame = state.frame!;
  const start = startOf(state);
  if (start === null) return nothingYet("No device has reported yet.");
  const rowPx = rowPxOf(state.widthPx);
  const chain = waitChain(frame, start);
  const devices = [...frame.devices].sort((left, right) => left.device - right.device);
  return [
    card(`Why is device ${start} waiting?`, h("ol", { class: "chain", id: "chain" }, chain.map((link, index) => linkView(link, index, actions))),
      h("p", { class: "note" }, "The positions of the devices are up to half a second old, and were not all read at one moment. The slider below shows an earlier moment; its chain does not change while you read it.")),
    h("h2", { key: "devices" }, "Devices"),
    virtualList(state, actions, { name: "devices", rows: devices, rowPx, heightPx: Math.max(200, state.heightPx - 440), props: { role: "list", tabindex: "0", "aria-label": "devices" }, render: (one) => rowView(one, start, rowPx, actions) }),
  ];
}
