// What a loss costs: which state is safe, and where.

import type { AppState } from "../app_state.js";
import { h, type Child } from "../dom.js";
import { formatClock, formatNumber } from "../format.js";
import { card, facts, nothingYet } from "./pieces.js";

export function snapshotsView(state: AppState): Child {
  const frame = state.frame!;
  const { snapshots, job } = frame;
  const past = state.events.filter((one) => one.kind === "snapshot" && one.at_ms <= (state.isLive ? Infinity : frame.at_ms)).slice(-100).reverse();
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
    card("Newest on disk", past.length === 0 ? nothingYet("No snapshot came to disk since this page was opened, or since the oldest event that the job keeps.") : h("ul", { class: "past" }, past.map((one) => h("li", { key: one.key }, h("time", null, formatClock(one.at_ms)), ` ${one.text}`)))),
  ];
}
