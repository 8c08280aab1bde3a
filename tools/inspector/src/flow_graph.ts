// Who sends to whom, and how much: processes as nodes, links as edges.

import type { Frame } from "./api.js";

export interface FlowNode {
  rank: number;
  x: number;
  y: number;
  label: string;
  state: string;
}

export interface FlowEdge {
  from: number;
  to: number;
  bytes: number | null;
  bytesPerS: number | null;
  inFlight: number | null;
  /// Only known from the plan: its stages are neighbours.
  isPlanned: boolean;
}

export interface FlowGraph {
  nodes: FlowNode[];
  edges: FlowEdge[];
  width: number;
  height: number;
}

const columnPx = 230;
const rowPx = 130;

/// What one process sends to another; before anything was sent, the pairs that the plan joins, without numbers.
export function flowEdges(frame: Frame): FlowEdge[] {
  const links = frame.links.filter((one) => one.from !== one.to);
  if (links.length > 0)
    return links.map((one) => ({
      from: one.from,
      to: one.to,
      bytes: one.tensor_bytes_sent,
      bytesPerS: one.bytes_per_s,
      inFlight: one.tensors_in_flight,
      isPlanned: false,
    }));
  const rankOf = new Map<number, number>();
  for (const device of frame.plan?.devices ?? [])
    if (device.rank !== null) for (const stage of device.stages) rankOf.set(stage, device.rank);
  const edges = new Map<string, FlowEdge>();
  const add = (from: number | undefined, to: number | undefined) => {
    if (from === undefined || to === undefined || from === to) return;
    edges.set(`${from}>${to}`, { from, to, bytes: null, bytesPerS: null, inFlight: null, isPlanned: true });
  };
  for (let stage = 0; stage + 1 < (frame.plan?.num_stages ?? 0); ++stage) {
    add(rankOf.get(stage), rankOf.get(stage + 1));
    add(rankOf.get(stage + 1), rankOf.get(stage));
  }
  return [...edges.values()];
}

/// Processes in rows, each row in the other direction, so that neighbours in the pipeline stay neighbours.
export function flowGraph(frame: Frame, widthPx: number): FlowGraph {
  const columns = Math.max(1, Math.min(frame.nodes.length, Math.floor(widthPx / columnPx)));
  const nodes = [...frame.nodes]
    .sort((left, right) => left.rank - right.rank)
    .map((node, index) => {
      const row = Math.floor(index / columns);
      const column = row % 2 === 0 ? index % columns : columns - 1 - (index % columns);
      return { rank: node.rank, x: (column + 0.5) * columnPx, y: (row + 0.5) * rowPx, label: `rank ${node.rank}`, state: node.state };
    });
  const known = new Set(nodes.map((node) => node.rank));
  const rows = Math.ceil(nodes.length / columns);
  return {
    nodes,
    edges: flowEdges(frame).filter((edge) => known.has(edge.from) && known.has(edge.to)),
    width: columns * columnPx,
    height: Math.max(1, rows) * rowPx,
  };
}

/// How wide an edge is drawn, from 1.5 to 8 pixels by the logarithm of its rate.
export function edgePx(bytesPerS: number | null): number {
  if (bytesPerS === null || bytesPerS < 1) return 1.5;
  return Math.min(8, 1.5 + Math.log10(bytesPerS) * 0.7);
}
