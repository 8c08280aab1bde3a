// The tree of supervision as rows of a list.

import type { Actor, Frame, Process } from "./api.js";

export interface TreeRow {
  id: string;
  depth: number;
  label: string;
  /// Null: a group, not an actor.
  actor: Actor | null;
  process: Process | null;
  numChildren: number;
  isOpen: boolean;
  /// Of the nearest row above that is one level higher; null: a root.
  parent: string | null;
}

/// One process: what it reported, and its actors.
interface Branch {
  key: string;
  rank: number;
  incarnation: number;
  report: Process | null;
  isLost: boolean;
  supervisor: Actor | null;
  children: Actor[];
}

const processKey = (rank: number, incarnation: number) => `${rank}#${incarnation}`;

function branchesOf(frame: Frame): Branch[] {
  const found = new Map<string, Branch>();
  const take = (rank: number, incarnation: number): Branch => {
    const key = processKey(rank, incarnation);
    let one = found.get(key);
    if (!one) {
      one = { key, rank, incarnation, report: null, isLost: false, supervisor: null, children: [] };
      found.set(key, one);
    }
    return one;
  };
  for (const process of frame.processes) take(process.rank, process.incarnation).report = process;
  for (const process of frame.replaced) Object.assign(take(process.rank, process.incarnation), { report: process, isLost: true });
  for (const actor of frame.actors) {
    const branch = take(actor.rank, actor.incarnation);
    if (actor.parent === null) branch.supervisor = actor;
    else branch.children.push(actor);
  }
  return [...found.values()].sort((left, right) => left.rank - right.rank || right.incarnation - left.incarnation);
}

/// " of replica 1 slice 3", without what is 0 or null.
export function laneText(replica: unknown, slice: unknown): string {
  const lane = (replica ? ` replica ${replica}` : "") + (slice ? ` slice ${slice}` : "");
  return lane ? ` of${lane}` : "";
}

export function actorName(actor: Actor): string {
  if (actor.parent === null) return `supervisor of rank ${actor.rank}`;
  return `${actor.role} ${actor.number}${laneText(actor.replica, actor.slice)}`;
}

interface Filter {
  /// From "rank 2"; null: any.
  rank: number | null;
  words: string[];
}

function filterOf(text: string): Filter {
  const filter: Filter = { rank: null, words: [] };
  const rest = text.toLowerCase().replace(/\brank\s+(\d+)/, (_, rank: string) => {
    filter.rank = Number(rank);
    return " ";
  });
  filter.words = rest.split(/\s+/).filter((word) => word !== "");
  return filter;
}

function matches(branch: Branch, actor: Actor | null, filter: Filter): boolean {
  if (filter.rank !== null && filter.rank !== branch.rank) return false;
  const text = [
    branch.report?.host, branch.report?.state, branch.isLost ? "lost" : "", actor?.id, actor && actorName(actor), actor?.state, actor?.reason,
  ].join(" ").toLowerCase();
  return filter.words.every((word) => text.includes(word));
}

/// Rows in order, children only of what is open. With a filter ("rank 2", and words), matching actors and the processes above them are
/// shown, all open. `closed` names processes that are not open.
export function treeRows(frame: Frame, closed: ReadonlySet<string>, filter: string): TreeRow[] {
  const wanted = filterOf(filter);
  const isFiltered = filter.trim() !== "";
  const rows: TreeRow[] = [];
  for (const branch of branchesOf(frame)) {
    const isWhole = matches(branch, branch.supervisor, wanted);
    const children = isWhole ? branch.children : branch.children.filter((one) => matches(branch, one, wanted));
    if (!isWhole && children.length === 0) continue;
    const isOpen = isFiltered || !closed.has(branch.key);
    const id = branch.supervisor?.id ?? `${branch.key}/supervisor`;
    const again = branch.incarnation > 0 ? `, incarnation ${branch.incarnation}` : "";
    rows.push({
      id, depth: 0, label: `rank ${branch.rank}${again}${branch.isLost ? " (lost)" : ""}`, actor: branch.supervisor,
      process: branch.report, numChildren: children.length, isOpen, parent: null,
    });
    if (!isOpen) continue;
    for (const actor of children)
      rows.push({ id: actor.id, depth: 1, label: actorName(actor), actor, process: branch.report, numChildren: 0, isOpen: false, parent: id });
  }
  return rows;
}

export type TreeKey = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight" | "Home" | "End" | "PageUp" | "PageDown";

/// What a key does in a tree (WAI-ARIA): the row to go to, or the one to open or close.
export function treeMove(rows: TreeRow[], current: string | null, key: TreeKey, page: number): { go?: string; toggle?: string } {
  if (rows.length === 0) return {};
  const at = Math.max(0, rows.findIndex((row) => row.id === current));
  const row = rows[at]!;
  const to = (index: number) => ({ go: rows[Math.min(rows.length - 1, Math.max(0, index))]!.id });
  if (row.id !== current) return to(key === "End" ? rows.length - 1 : 0);
  switch (key) {
    case "ArrowDown": return to(at + 1);
    case "ArrowUp": return to(at - 1);
    case "PageDown": return to(at + page);
    case "PageUp": return to(at - page);
    case "Home": return to(0);
    case "End": return to(rows.length - 1);
    case "ArrowRight":
      if (row.numChildren === 0) return {};
      return row.isOpen ? to(at + 1) : { toggle: row.id };
    case "ArrowLeft":
      if (row.numChildren > 0 && row.isOpen) return { toggle: row.id };
      return row.parent === null ? {} : { go: row.parent };
  }
}
