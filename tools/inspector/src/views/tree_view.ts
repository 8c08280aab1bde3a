// The actors under their supervisors.

import type { AppActions, AppState } from "../app_state.js";
import type { Device, Frame } from "../api.js";
import { treeMove, treeRows, type TreeKey, type TreeRow } from "../actor_tree.js";
import { h, type Child, type VNode } from "../dom.js";
import { formatNumber, formatSeconds } from "../format.js";
import { virtualList } from "../virtual_list.js";
import { scrollToShow } from "../virtual_rows.js";
import { actorDetail } from "./actor_view.js";
import { nothingYet, pill } from "./pieces.js";

const rowPx = 30;
const keys = new Set(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End", "PageUp", "PageDown"]);

const processOf = (row: TreeRow) => row.id.slice(0, row.id.indexOf("/"));
const elementId = (row: TreeRow) => `row ${row.id}`.replaceAll(/[^A-Za-z0-9_-]/g, "_");

export function devicesByActor(frame: Frame): Map<string, Device> {
  const found = new Map<string, Device>();
  for (const one of frame.devices) found.set(`${one.rank} ${one.device}`, one);
  return found;
}

function rowView(row: TreeRow, state: AppState, devices: Map<string, Device>, select: (row: TreeRow, opens: boolean) => void, toggle: (row: TreeRow) => void): VNode {
  const { actor } = row;
  const device = actor?.role === "device" && actor.state === "running" ? devices.get(`${actor.rank} ${actor.number}`) : undefined;
  const stateText = row.depth === 0 && row.process ? row.process.state : (actor?.state ?? "");
  return h(
    "div",
    {
      key: row.id, id: elementId(row), role: "treeitem", class: `row depth-${row.depth}`, style: { height: `${rowPx}px` },
      "aria-level": row.depth + 1, "aria-expanded": row.numChildren > 0 ? String(row.isOpen) : null,
      "aria-selected": String(row.id === state.selectedRow), onclick: () => select(row, false), ondblclick: () => select(row, true),
    },
    h("span", { class: "twist", "aria-hidden": "true", onclick: (event: Event) => { event.stopPropagation(); if (row.numChildren > 0) toggle(row); } }, row.numChildren > 0 ? (row.isOpen ? "▾" : "▸") : ""),
    h("span", { class: "row-name" }, row.label),
    stateText ? pill(row.label.endsWith("(lost)") ? "lost" : stateText) : null,
    actor && actor.restarts > 0 ? h("span", { class: "note warn" }, `started again ${actor.restarts}×`) : null,
    row.depth === 0 && row.process ? h("span", { class: "note" }, `pid ${row.process.pid}, generation ${row.process.generation}`) : null,
    device ? h("span", { class: "note" }, `${device.place?.startsWith("cuda") ? `${device.place} ` : ""}${device.activity.replaceAll("_", " ")} ${device.action ?? ""} ${formatSeconds(device.at_position_s)}`) : null,
    actor?.reason ? h("span", { class: "note warn" }, actor.reason) : null,
    typeof actor?.mailbox_depth === "number" ? h("span", { class: "mailbox", title: "messages that wait in its mailbox" }, `✉ ${formatNumber(actor.mailbox_depth)}`) : null,
  );
}

export function treeView(state: AppState, actions: AppActions): Child {
  const frame = state.frame!;
  const rows = treeRows(frame, state.closedProcesses, state.treeFilter);
  const devices = devicesByActor(frame);
  const heightPx = Math.max(240, state.heightPx - 250);
  const toggle = (changed: AppState, row: TreeRow) => {
    const process = processOf(row);
    if (!changed.closedProcesses.delete(process)) changed.closedProcesses.add(process);
  };
  const select = (row: TreeRow, opens: boolean) =>
    actions.change((changed) => {
      if (opens && row.numChildren > 0) toggle(changed, row);
      changed.selectedRow = row.id;
    });
  const onkeydown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && state.selectedRow !== null) {
      event.preventDefault();
      return actions.go("actor", state.selectedRow);
    }
    if (!keys.has(event.key)) return;
    event.preventDefault();
    const list = event.currentTarget as Element;
    const move = treeMove(rows, state.selectedRow, event.key as TreeKey, Math.max(1, Math.floor(heightPx / rowPx) - 1));
    actions.change((changed) => {
      if (move.toggle !== undefined) toggle(changed, rows.find((row) => row.id === move.toggle)!);
      if (move.go === undefined) return;
      changed.selectedRow = move.go;
      const top = scrollToShow(rows.findIndex((row) => row.id === move.go), rowPx, list.scrollTop, list.clientHeight);
      changed.scrollTops.set("tree", top);
      list.scrollTop = top;
    });
  };
  const selected = rows.find((row) => row.id === state.selectedRow);
  return [
    h(
      "div", { class: "bar-of-view", key: "bar" },
      h("label", null, "Filter ", h("input", {
        type: "search", id: "filter", value: state.treeFilter, placeholder: "rank 2 stage",
        oninput: (event: Event) => { const text = (event.currentTarget as HTMLInputElement).value; actions.change((changed) => { changed.treeFilter = text; }); },
      })),
      h("span", { class: "note", id: "count" }, `${formatNumber(frame.actors.filter((one) => one.state === "running").length)} actors run, ${formatNumber(frame.actors.length)} known. ✉: messages that wait in the mailbox`),
    ),
    h(
      "div", { class: "split", key: "split" },
      rows.length === 0
        ? nothingYet(state.treeFilter ? "No actor has all these words." : "No process has reported yet.")
        : virtualList(state, actions, {
            name: "tree", rows, rowPx, heightPx,
            props: { role: "tree", tabindex: "0", class: "tree", "aria-label": "supervision tree", "aria-activedescendant": selected ? elementId(selected) : null, onkeydown },
            render: (row) => rowView(row, state, devices, select, (opened) => actions.change((changed) => toggle(changed, opened))),
          }),
      h("aside", { "aria-label": "selected actor" }, selected ? actorDetail(state, actions, selected.id) : nothingYet("Select an actor: what it does is shown here. Enter opens it.")),
    ),
  ];
}
