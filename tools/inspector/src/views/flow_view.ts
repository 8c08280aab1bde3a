// Who sends to whom.

import type { AppActions, AppState } from "../app_state.js";
import type { Frame, Link, LinkTotal } from "../api.js";
import { h, type Child, type VNode } from "../dom.js";
import { edgePx, flowGraph, type FlowEdge, type FlowNode } from "../flow_graph.js";
import { formatBytes, formatNumber } from "../format.js";
import { virtualList } from "../virtual_list.js";
import { nothingYet } from "./pieces.js";

const mostDrawn = 64;
const rowPx = 28;
const nodeWidth = 156;
const nodeHeight = 52;

function edgeView(edge: FlowEdge, nodes: Map<number, FlowNode>): VNode | null {
  const from = nodes.get(edge.from);
  const to = nodes.get(edge.to);
  if (!from || !to) return null;
  // To the right of the way, so that both directions can be seen.
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const length = Math.max(1, Math.hypot(dx, dy));
  const bend = 30;
  const middleX = (from.x + to.x) / 2 + (dy / length) * bend;
  const middleY = (from.y + to.y) / 2 - (dx / length) * bend;
  const said = `rank ${edge.from} to rank ${edge.to}${edge.isPlanned ? ": stages that are neighbours" : `: ${formatBytes(edge.bytesPerS)}/s, ${formatBytes(edge.bytes)} in all`}${edge.inFlight ? `, ${edge.inFlight} tensors in flight` : ""}`;
  return h(
    "g", { key: `${edge.from}>${edge.to}`, class: "edge" },
    h("path", { d: `M${from.x} ${from.y}Q${middleX} ${middleY} ${to.x} ${to.y}`, "stroke-width": edgePx(edge.bytesPerS), "stroke-dasharray": edge.isPlanned ? "5 4" : null }, h("title", null, said)),
    edge.bytesPerS ? h("text", { x: (from.x + to.x) / 2 + (dy / length) * bend * 0.72, y: (from.y + to.y) / 2 - (dx / length) * bend * 0.72 + 4 }, `${formatBytes(edge.bytesPerS)}/s ${dx > 0 || (dx === 0 && dy > 0) ? "→" : "←"}`) : null,
  );
}

function nodeView(node: FlowNode, frame: Frame, actions: AppActions): VNode {
  const all = frame.linkTotals.find((one) => one.rank === node.rank);
  const stages = (frame.plan?.devices ?? []).filter((one) => one.rank === node.rank).flatMap((one) => one.stages);
  const open = () => actions.go("tree");
  return h(
    "g", { key: String(node.rank), class: `flow-node ${node.state}`, tabindex: "0", role: "button", "aria-label": `${node.label}, ${node.state}`,
      onclick: () => { actions.change((changed) => { changed.treeFilter = `rank ${node.rank}`; }); open(); },
      onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter") { actions.change((changed) => { changed.treeFilter = `rank ${node.rank}`; }); open(); } } },
    h("rect", { x: node.x - nodeWidth / 2, y: node.y - nodeHeight / 2, width: nodeWidth, height: nodeHeight, rx: 8 }),
    h("text", { x: node.x, y: node.y - 8, class: "strong" }, node.label),
    h("text", { x: node.x, y: node.y + 7 }, stages.length === 0 ? node.state : stages.length > 4 ? `${stages.length} stages` : `stage ${stages.join(", ")}`),
    all ? h("text", { x: node.x, y: node.y + 20 }, `↑ ${formatBytes(all.bytes_sent_per_s)}/s ↓ ${formatBytes(all.bytes_received_per_s)}/s`) : null,
  );
}

function linkRow(link: Link, index: number): VNode {
  const name = `rank ${link.from} → rank ${link.to}`;
  return h(
    "div", { key: `${name} ${index}`, class: "row", role: "listitem", style: { height: `${rowPx}px` } },
    h("span", { class: "row-name" }, name),
    h("span", { class: "note" }, `tensors ${formatBytes(link.tensor_bytes_sent)} (${formatBytes(link.bytes_per_s)}/s)`),
    h("span", { class: "note" }, `control ${formatNumber(link.frames_sent)} messages, ${formatBytes(link.frame_bytes_sent)}`),
    link.tensors_in_flight ? h("span", { class: "note" }, `${formatNumber(link.tensors_in_flight)} tensors, ${formatBytes(link.tensor_bytes_in_flight)} in flight`) : null,
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
  if (frame.nodes.length === 0) return nothingYet("No process has reported yet.");
  const graph = flowGraph(frame, state.widthPx);
  const nodes = new Map(graph.nodes.map((node) => [node.rank, node]));
  const isDrawn = graph.nodes.length <= mostDrawn;
  return [
    h("p", { key: "about" }, graph.edges.some((one) => one.isPlanned) ? "Dashed: stages that are neighbours in the plan. Nothing was sent yet." : "Tensors between processes: the wider, the more bytes a second. The numbers in a process are those of all its links."),
    isDrawn
      ? h("div", { class: "scroll-x", key: "graph" }, h("svg", { class: "flow", width: graph.width, height: graph.height, role: "group", "aria-label": "message flow" }, graph.edges.map((edge) => edgeView(edge, nodes)), graph.nodes.map((node) => nodeView(node, frame, actions))))
      : h("p", { key: "graph" }, `${graph.nodes.length} processes are too many to draw; this is their list.`),
    h("h2", { key: "links" }, "Links"),
    faults(frame.linkTotals),
    virtualList(state, actions, { name: "links", rows: frame.links, rowPx, heightPx: isDrawn ? 300 : state.heightPx - 260, props: { role: "list", tabindex: "0", "aria-label": "links" }, render: linkRow }),
  ];
}
