// What the views are made from.

import type { Frame, Step } from "./api.js";
import type { Connection } from "./feed.js";
import type { EventRow } from "./job_events.js";

export const viewNames = ["overview", "tree", "timeline", "waits", "flow", "events", "snapshots"] as const;
export type ViewName = (typeof viewNames)[number] | "actor";

export interface Route {
  view: ViewName;
  /// Of the actor, or the number of the device.
  of: string;
}

export interface AppState {
  /// What is shown: the newest, or one of the last minutes.
  frame: Frame | null;
  isLive: boolean;
  oldestMs: number;
  newestMs: number;
  steps: Step[];
  events: EventRow[];
  connection: Connection;
  problem: string;
  route: Route;
  /// Of the part of the window that views have, in pixels.
  widthPx: number;
  heightPx: number;
  treeFilter: string;
  closedProcesses: Set<string>;
  selectedRow: string | null;
  eventFilter: string;
  hiddenKinds: Set<string>;
  zoom: number;
  /// For how long the job has told the same, in seconds.
  staleS: number;
  isLogLoss: boolean;
  /// Weight of the past in the curve of the loss; 0: not smoothed.
  lossSmoothing: number;
  scrollTops: Map<string, number>;
  message: string;
}

/// A command to the job (docs/inspect.md, Control).
export interface Command {
  /// Short and in the imperative: the question, and the button that confirms it.
  deed: string;
  /// What it does to the job.
  detail: string;
  action: string;
  body: Record<string, unknown>;
}

/// What views may ask of the page.
export interface AppActions {
  change(how: (state: AppState) => void): void;
  go(view: ViewName, of?: string): void;
  /// Gives the job a command, once the reader has confirmed it.
  control(command: Command): void;
}

export function parseRoute(hash: string): Route {
  const found = /^#\/([a-z]+)(?:\/(.*))?$/.exec(hash);
  const view = found?.[1] as ViewName | undefined;
  if (!view || (view !== "actor" && !viewNames.includes(view as (typeof viewNames)[number]))) return { view: "overview", of: "" };
  try {
    return { view, of: decodeURIComponent(found?.[2] ?? "") };
  } catch {
    return { view, of: "" };
  }
}

export function routeHash(view: ViewName, of = ""): string {
  return of === "" ? `#/${view}` : `#/${view}/${encodeURIComponent(of)}`;
}
