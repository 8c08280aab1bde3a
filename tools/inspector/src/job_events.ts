// Events of the job and lines of its log, as rows of one list.

import type { LogLine } from "./api.js";
import { laneText } from "./actor_tree.js";
import { formatNumber, formatSeconds } from "./format.js";

export interface EventRow {
  /// Unique among all rows.
  key: string;
  at_ms: number;
  kind: string;
  level: "info" | "warning" | "error";
  text: string;
  rank: number | null;
  /// "stage 1" of the actor that it is about.
  actor: string | null;
  /// Of a snapshot that came to disk.
  step: number | null;
  /// Of a command that has an outcome.
  command: CommandOutcome | null;
}

export interface CommandOutcome {
  id: string;
  action: string;
  /// "done", "refused", "failed", "timed out" or "lost".
  outcome: string;
  text: string;
}

type Data = Record<string, unknown>;

const text = (value: unknown) => (value === null || value === undefined ? "?" : String(value));
const word = (value: unknown) => text(value).replaceAll("_", " ");
const numberOr = (value: unknown, otherwise: number | null) => (typeof value === "number" ? value : otherwise);

/// As actorName has it.
function actorText(data: Data): string {
  return `${text(data.role)} ${text(data.number)}${laneText(data.replica, data.slice)}`;
}

function describe(kind: string, data: Data): { text: string; level: EventRow["level"] } {
  const info = (shown: string) => ({ text: shown, level: "info" as const });
  switch (kind) {
    case "step":
      return info(`step ${text(data.step)}, loss ${formatNumber(numberOr(data.loss, null), 5)}`);
    case "generation":
      return info(`generation ${text(data.generation)} has begun`);
    case "recovery": {
      const cause = data.cause ? `: ${text(data.cause)}` : "";
      const who = data.rank === -1 ? "" : ` of the loss of rank ${text(data.rank)}`;
      return { text: `recovery${who} took ${formatSeconds(numberOr(data.seconds, null))}${cause}`, level: "warning" };
    }
    case "call":
      return info(`call ${text(data.call)} (${text(data.kind)}): ${text(data.state)}`);
    case "pause":
      return info(data.paused ? "the job was paused" : "the job goes on");
    case "snapshot":
      return info(`the snapshot of step ${text(data.step)} is on disk`);
    case "process":
      return info(`rank ${text(data.rank)}, incarnation ${text(data.incarnation)}, is process ${text(data.pid)}`);
    case "process_state":
      return info(`rank ${text(data.rank)} is ${text(data.state)}`);
    case "actor": {
      const failed = data.reason ? `: ${text(data.reason)}` : "";
      const again = Number(data.starts) > 1 ? `, start ${text(data.starts)}` : "";
      return { text: `${actorText(data)} of rank ${text(data.rank)}: ${text(data.state)}${again}${failed}`, level: failed ? "warning" : "info" };
    }
    case "control": {
      const why = data.text ? `: ${text(data.text)}` : "";
      const target = data.target ? ` ${text(data.target)}` : "";
      return { text: `command ${word(data.action)}${target}: ${word(data.outcome)}${why}`, level: data.outcome === "done" ? "info" : "warning" };
    }
    case "dropped":
      return { text: `${text(data.events)} older events are not kept any more`, level: "warning" };
    case "restarted":
      return { text: "rank 0 was replaced: events are numbered anew", level: "warning" };
    default:
      return info(JSON.stringify(data));
  }
}

/// A row of what the stream of events sent; null: the data is no object in JSON.
export function eventRow(kind: string, id: string, json: string, nowMs: number): EventRow | null {
  let data: unknown;
  try {
    data = JSON.parse(json);
  } catch {
    return null;
  }
  if (typeof data !== "object" || data === null || Array.isArray(data)) return null;
  const fields = data as Data;
  const shown = describe(kind, fields);
  return {
    key: `event ${id}`,
    at_ms: numberOr(fields.at_ms, nowMs)!,
    kind,
    level: shown.level,
    text: shown.text,
    rank: numberOr(fields.rank, null),
    actor: kind === "actor" ? actorText(fields) : null,
    step: kind === "snapshot" ? numberOr(fields.step, null) : null,
    command: kind === "control" ? { id: text(fields.id), action: text(fields.action), outcome: word(fields.outcome), text: fields.text ? text(fields.text) : "" } : null,
  };
}

export function logRow(line: LogLine): EventRow {
  const level = line.level.startsWith("warn") ? "warning" : ["error", "critical"].includes(line.level) ? "error" : "info";
  return { key: `log ${line.number}`, at_ms: line.at_ms, kind: "log", level, text: `${line.level}: ${line.text}`, rank: 0, actor: null, step: null, command: null };
}

export interface EventFilter {
  /// Kinds that are not shown.
  hidden: ReadonlySet<string>;
  text: string;
}

/// The rows that a filter lets through, newest first. Every word must be in the row.
export function filterEvents(rows: EventRow[], filter: EventFilter, untilMs: number): EventRow[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  const found: EventRow[] = [];
  for (let index = rows.length - 1; index >= 0; --index) {
    const row = rows[index]!;
    if (row.at_ms > untilMs || filter.hidden.has(row.kind)) continue;
    const all = `${row.kind} ${row.text}`.toLowerCase();
    if (words.every((word) => all.includes(word))) found.push(row);
  }
  return found;
}

/// Rows in the order of their time, the newest `most` of them. Both lists are in order already.
export function addEvents(rows: EventRow[], added: EventRow[], most: number): EventRow[] {
  if (added.length === 0) return rows;
  const all = [...rows, ...added];
  if (rows.length > 0 && added[0]!.at_ms < rows[rows.length - 1]!.at_ms) all.sort((left, right) => left.at_ms - right.at_ms);
  return all.length > most ? all.slice(all.length - most) : all;
}
