// What a loss costs: which state is safe, and where.

import type { AppState } from "../app_state.js";
import { h, type Child } from "../dom.js";
import { formatClock, formatNumber } from "../format.js";
import { card, facts, nothingYet } from "./pieces.js";

export function snapshotsView(state: AppState): Child {
  const frame = state.frame!;
  const { snapshots, job } = frame;
  const past = state.events.filter((one) => one.kind === "snapshot" && one.at_ms <= (state.isLive ? Infinity : frame.at_ms)).slice(-100);
  const onDisk = snapshots.on_disk ?? null;
  // When those that are there came to disk, as far as this page has seen it.
  const cameAt = new Map(past.map((one) => [one.step, one.at_ms]));
  const behind = (step: number | null) => (step === null ? "none yet" : job.step === null || job.step <= step ? `step ${formatNumber(step)}` : `step ${formatNumber(step)}, ${formatNumber(job.step - step)} behind`);
  return [
    h(
      "div", { class: "cards", key: "cards" },
      card("In memory", facts([["safe from the loss of a process", behind(snapshots.committed_step)]])),
      card("On disk", facts([
        ["folder", snapshots.folder === null ? "none: --snapshot-dir names one" : h("code", null, snapshots.folder)],
        ["newest", behind(snapshots.step_on_disk)],
        ["being written", formatNumber(snapshots.pending)],
      ])),
    ),
    card("Now on disk", onDisk === null
      ? nothingYet(snapshots.folder === null ? "Snapshots are kept in memory only." : "Which snapshots the folder has is not known: rank 0 cannot read it.")
      : onDisk.length === 0 ? nothingYet("The folder has no snapshot yet.")
      : h("ul", { class: "past", id: "on-disk" }, onDisk.map((step) => h("li", { key: String(step) }, `step ${formatNumber(step)}`, cameAt.has(step) ? h("span", { class: "note" }, ", since ", h("time", null, formatClock(cameAt.get(step)!))) : null)))),
  ];
}
