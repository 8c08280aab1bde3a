// Who sends to whom, and how much: processes in a row in the order of their ranks, links as arcs. Arcs to a higher rank are above the
// row, arcs to a lower rank below it. The longer an arc the higher it is, so that no two arcs of a side have their middles in one place.

import type { Frame } from "./api.js";
import { formatBytes } from "./format.js";

export interface FlowNode {
  rank: number;
  /// Of its middle.
  x: number;
  y: number;
  label: string;
  state: string;
}

export interface FlowLink {
  from: number;
  to: number;
  bytes: number | null;
  bytesPerS: number | null;
  inFlight: number | null;
  /// Only known from the plan: its stages are neighbours.
  isPlanned: boolean;
}

export interface FlowLabel {
  /// Of its middle.
  x: number;
  y: number;
  text: string;
}

export interface FlowEdge extends FlowLink {
  /// Of an SVG: the line from the sender, and the arrow head at the receiver.
  path: string;
  head: string;
  widthPx: number;
  /// Its rate; null: there is none, or no room beside the labels of faster links.
  label: FlowLabel | null;
}

export interface FlowGraph {
  processes: FlowNode[];
  edges: FlowEdge[];
  nodeWidth: number;
  nodeHeight: number;
  width: number;
  height: number;
}

const leastColumnPx = 92; // four on a phone
const mostColumnPx = 230;
const nodeHeight = 72;
const mostLevelPx = 24;
const sidePx = 280;
export const labelHeightPx = 13;
const characterPx = 6.4;

/// How wide a text of the drawing is at most.
export function labelWidthPx(text: string): number {
  return text.length * characterPx;
}

/// What one process sends to another; before anything was sent, the pairs that the plan joins, without numbers.
export function flowLinks(frame: Frame): FlowLink[] {
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
  const found = new Map<string, FlowLink>();
  const add = (from: number | undefined, to: number | undefined) => {
    if (from === undefined || to === undefined || from === to) return;
    found.set(`${from}>${to}`, { from, to, bytes: null, bytesPerS: null, inFlight: null, isPlanned: true });
  };
  for (let stage = 0; stage + 1 < (frame.plan?.num_stages ?? 0); ++stage) {
    add(rankOf.get(stage), rankOf.get(stage + 1));
    add(rankOf.get(stage + 1), rankOf.get(stage));
  }
  return [...found.values()];
}

/// The level of each distance that occurs: 1 for the shortest arcs.
function levelsOf(distances: number[]): Map<number, number> {
  const levels = new Map<number, number>();
  for (const one of [...new Set(distances)].sort((left, right) => left - right)) levels.set(one, levels.size + 1);
  return levels;
}

/// Leaves out the labels that would cover one of a faster link.
function placeLabels(edges: FlowEdge[]): void {
  const placed: FlowLabel[] = [];
  const covers = (one: FlowLabel, other: FlowLabel) =>
    Math.abs(one.x - other.x) < (labelWidthPx(one.text) + labelWidthPx(other.text)) / 2 && Math.abs(one.y - other.y) < labelHeightPx;
  for (const edge of [...edges].sort((left, right) => (right.bytesPerS ?? 0) - (left.bytesPerS ?? 0))) {
    const { label } = edge;
    if (label === null) continue;
    if (placed.some((other) => covers(label, other))) edge.label = null;
    else placed.push(label);
  }
}

export function flowGraph(frame: Frame, widthPx: number): FlowGraph {
  const ranks = [...frame.processes].sort((left, right) => left.rank - right.rank);
  const columnPx = Math.max(leastColumnPx, Math.min(mostColumnPx, Math.floor(widthPx / Math.max(1, ranks.length))));
  const nodeWidth = Math.min(columnPx - 10, 150);
  const indexOf = new Map(ranks.map((process, index) => [process.rank, index]));
  const arcs = flowLinks(frame).flatMap((link) => {
    const [from, to] = [indexOf.get(link.from), indexOf.get(link.to)];
    return from === undefined || to === undefined ? [] : [{ link, from, to, distance: Math.abs(to - from) }];
  });
  const above = levelsOf(arcs.filter((one) => one.to > one.from).map((one) => one.distance));
  const below = levelsOf(arcs.filter((one) => one.to < one.from).map((one) => one.distance));
  const levelPx = Math.min(mostLevelPx, sidePx / Math.max(1, above.size, below.size));
  const room = (levels: Map<number, number>) => (levels.size > 0 ? levels.size * levelPx + labelHeightPx + 8 : 4);
  const middleY = room(above) + nodeHeight / 2;
  const xOf = (index: number) => (index + 0.5) * columnPx;
  const longest = Math.max(1, ...arcs.map((one) => one.distance));

  const edges = arcs.map(({ link, from, to, distance }): FlowEdge => {
    const isAbove = to > from;
    const up = isAbove ? -1 : 1;
    const ahead = isAbove ? 1 : -1;
    // Short arcs end near the corner that faces the other process, long ones near the middle of the side.
    const offset = (nodeWidth / 2 - 12) * (1 - (distance - 1) / longest) * ahead;
    const [beginX, endX] = [xOf(from) + offset, xOf(to) - offset];
    const sideY = middleY + (up * nodeHeight) / 2;
    const widthPx = edgePx(link.bytesPerS);
    const headPx = 5 + 1.5 * widthPx;
    const neckY = sideY + up * headPx;
    const heightPx = (isAbove ? above : below).get(distance)! * levelPx;
    // A cubic curve comes three quarters as far as its control points.
    const controlY = sideY + (up * heightPx * 4) / 3;
    const text = link.bytesPerS ? `${formatBytes(link.bytesPerS)}/s` : "";
    const at = (value: number) => value.toFixed(1);
    return {
      ...link,
      path: `M${at(beginX)} ${at(sideY)}C${at(beginX)} ${at(controlY)} ${at(endX)} ${at(controlY)} ${at(endX)} ${at(neckY)}`,
      head: `M${at(endX - headPx / 2)} ${at(neckY)}L${at(endX + headPx / 2)} ${at(neckY)}L${at(endX)} ${at(sideY)}Z`,
      widthPx,
      label: text === "" ? null : { x: (beginX + endX) / 2, y: sideY + up * (heightPx + headPx / 8 + widthPx / 2 + labelHeightPx / 2 + 1), text },
    };
  });
  placeLabels(edges);
  return {
    processes: ranks.map((process, index) => ({ rank: process.rank, x: xOf(index), y: middleY, label: `rank ${process.rank}`, state: process.state })),
    edges,
    nodeWidth,
    nodeHeight,
    width: ranks.length * columnPx,
    height: middleY + nodeHeight / 2 + room(below),
  };
}

/// How wide an edge is drawn: from 1.5 pixels at 1 kB a second to 6.5, by the logarithm of its rate.
export function edgePx(bytesPerS: number | null): number {
  if (bytesPerS === null || bytesPerS < 1000) return 1.5;
  return Math.min(6.5, 1.5 + Math.log10(bytesPerS / 1000) * 0.85);
}
