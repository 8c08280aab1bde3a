// Who sends to whom.

import type { AppActions, AppState } from "../app_state.js";
import type { Frame, Link, LinkTotal } from "../api.js";
import { h, type Child, type VNode } from "../dom.js";
import { flowGraph, labelWidthPx, type FlowEdge, type FlowGraph, type FlowNode } from "../flow_graph.js";
import { formatBytes, formatNumber } from "../format.js";
import { virtualList } from "../virtual_list.js";
import { nothingYet } from "./pieces.js";

const mostDrawn = 64;
/// On a phone a link has up to three lines.
const rowPxOf = (widthPx: number) => (widthPx < 600 ? 74 : 28);

function edgeView(edge: FlowEdge): VNode {
  const sent = edge.isPlanned ? "neighbouring stages of the plan" : edge.bytes ? `${formatBytes(edge.bytesPerS)}/s of tensors, ${formatBytes(edge.bytes)} in all` : "control messages only";
  const title = `rank ${edge.from} to rank ${edge.to}: ${sent}${edge.inFlight ? `, ${formatNumber(edge.inFlight)} tensor${edge.inFlight === 1 ? "" : "s"} in flight` : ""}`;
  const kind = edge.isPlanned ? "planned" : edge.bytes ? "tensors" : "control";
  return h(
    "g", { key: `${edge.from}>${edge.to}`, class: `edge ${kind}` },
    h("title", null, title), h("path", { class: "line", d: edge.path, "stroke-width": edge.widthPx }), h("path", { class: "head", d: edge.head }),
  );
}

function labelView(edge: FlowEdge): VNode | null {
  return edge.label && h("text", { key: `${edge.from}>${edge.to} label`, class: "edge-label", x: edge.label.x.toFixed(1), y: (edge.label.y + 4).toFixed(1) }, edge.label.text);
}

function nodeView(process: FlowNode, graph: FlowGraph, frame: Frame, actions: AppActions): VNode {
  const all = frame.linkTotals.find((one) => one.rank === process.rank);
  const stages = (frame.plan?.devices ?? []).filter((one) => one.rank === process.rank).flatMap((one) => one.stages);
  const names = `stage ${stages.join(", ")}`;
  const { nodeWidth, nodeHeight } = graph;
  const stageText = stages.length === 0 ? process.state : labelWidthPx(names) > nodeWidth - 8 ? `${stages.length} stages` : names;
  const open = () => {
    actions.change((changed) => { changed.treeFilter = `rank ${process.rank}`; });
    actions.go("tree");
  };
  const line = (index: number, text: string, style = "") => h("text", { key: String(index), x: process.x, y: process.y - nodeHeight / 2 + 17 + index * 15, class: style }, text);
  return h(
    "g", { key: String(process.rank), class: `flow-node ${process.state}`, tabindex: "0", role: "button", "aria-label": `${process.label}, ${process.state}`, onclick: open,
      onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter") open(); } },
    h("rect", { x: process.x - nodeWidth / 2, y: process.y - nodeHeight / 2, width: nodeWidth, height: nodeHeight, rx: 8 }),
    line(0, process.label, "strong"), line(1, stageText),
    all ? [line(2, `↑ ${formatBytes(all.bytes_sent_per_s)}/s`), line(3, `↓ ${formatBytes(all.bytes_received_per_s)}/s`)] : null,
  );
}

function linkRow(link: Link, index: number, rowPx: number): VNode {
  const name = `rank ${link.from} → rank ${link.to}`;
  return h(
    "div", { key: `${name} ${index}`, class: "row link wraps", role: "listitem", style: { height: `${rowPx}px` } },
    h("span", { class: "row-name" }, name),
    h("span", { class: "note" }, `tensors ${formatBytes(link.tensor_bytes_sent)} (${formatBytes(link.bytes_per_s)}/s)`),
    h("span", { class: "note" }, `control ${formatNumber(link.frames_sent)} messages, ${formatBytes(link.frame_bytes_sent)}`),
    link.tensors_in_flight ? h("span", { class: "note" }, `${formatNumber(link.tensors_in_flight)} tensor${link.tensors_in_flight === 1 ? "" : "s"}, ${formatBytes(link.tensor_bytes_in_flight)} in flight`) : null,
    link.frame_bytes_queued ? h("span", { class: "note warn" }, `${formatBytes(link.frame_bytes_queued)} queued`) : null,
  );
}

/// Processes that got frames which they dropped.
function faults(totals: LinkTotal[]): Child {
  const faulty = totals.filter((one) => one.stale_frames + one.bad_frames > 0);
  if (faulty.length === 0) return null;
  return h("p", { key: "faults", class: "note warn" }, faulty.map((one) => `Rank ${one.rank} has dropped ${one.stale_frames} stale and ${one.bad_frames} bad frames. `).join(""));
}

export function flowView(state: AppState, actions: AppActions): Child {
  const frame = state.frame!;
  if (frame.processes.length === 0) return nothingYet("No process has reported yet.");
  const graph = flowGraph(frame, state.widthPx);
  const isDrawn = graph.processes.length <= mostDrawn;
  const rowPx = rowPxOf(state.widthPx);
  return [
    h("p", { key: "about" }, !isDrawn ? `${graph.processes.length} processes are too many to draw. The list has their links.` : graph.edges.some((one) => one.isPlanned) ? "Nothing was sent yet. Dashed: neighbouring stages of the plan." : "Tensors from process to process: to a higher rank above, to a lower rank below; the wider, the more bytes a second. Thin and grey: control messages only. ↑ and ↓: all tensors that a process sends and receives."),
    isDrawn
      ? h("div", { class: "scroll-x", key: "graph" }, h("svg", { class: "flow", width: graph.width, height: graph.height, role: "group", "aria-label": "message flow" }, graph.edges.map(edgeView), graph.edges.map(labelView), graph.processes.map((process) => nodeView(process, graph, frame, actions))))
      : null,
    h("h2", { key: "links" }, "Links"),
    faults(frame.linkTotals),
    virtualList(state, actions, { name: "links", rows: frame.links, rowPx, heightPx: isDrawn ? 300 : state.heightPx - 260, props: { role: "list", tabindex: "0", "aria-label": "links" }, render: (link, index) => linkRow(link, index, rowPx) }),
  ];
}
