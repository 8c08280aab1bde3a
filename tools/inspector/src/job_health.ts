// Whether a job is well, in one word with a colour, and in a sentence.

import { jobState, type Finding, type Frame, type Job, type Process } from "./api.js";
import { formatNumber, formatSeconds } from "./format.js";

export interface Health {
  /// The colour: all is well; something wants a look or is in between; the job cannot be seen.
  kind: "good" | "between" | "bad";
  word: string;
  text: string;
}

/// Threads of a process that wait for a core, on average, from which on that is worth saying.
export const lacksCoresFrom = 0.2;
/// So long without news from the actor that gathers, /healthz says so too.
const staleAfterS = 10;

/// For how long no step has been done in a job that is to do some, in seconds; null: it does.
function idleSeconds(job: Job): number | null {
  const isTraining = job.state === "running" && job.call_kind === "train" && !job.is_paused;
  if (!isTraining || job.steps_per_s !== 0 || !job.newest_step_ms) return null;
  return Math.max(0, (job.updated_ms - job.newest_step_ms) / 1000);
}

/// `isSeen`: the job answers. `staleS`: for how long it has told the same, in seconds.
export function healthOf(frame: Frame, isSeen = true, staleS = 0): Health {
  const { job } = frame;
  const state = jobState(job);
  const findings = frame.findings ?? [];
  if (!isSeen) return { kind: "bad", word: `was ${state}`, text: "" }; // the page's notice says why
  if (staleS >= staleAfterS) return { kind: "between", word: `was ${state}`, text: `Nobody has gathered what the job does for ${formatSeconds(Math.round(staleS))}: what is shown is that old.` };
  const idle = idleSeconds(job);
  const goesOn = idle === null ? state : `no step for ${formatSeconds(Math.round(idle))}`;
  if (findings.length > 0) return { kind: "between", word: `${goesOn}, ${findings.length} finding${findings.length === 1 ? "" : "s"}`, text: "Something is wrong." };
  if (idle !== null) return { kind: "between", word: goesOn, text: `The job trains, and no step has been done for ${formatSeconds(Math.round(idle))}.` };
  if (state !== "running") return { kind: "between", word: state, text: "" };
  return { kind: "good", word: state, text: frame.findings === null ? "" : "Nothing is wrong, as far as can be seen." };
}

/// The state of a process: green only if nothing is wrong with it.
export function processHealth(process: Process, findings: Finding[]): Health {
  const wrong = findings.filter((one) => one.rank === process.rank).map((one) => one.kind.replaceAll("_", " "));
  if (wrong.length > 0) return { kind: "between", word: `${process.state}, ${wrong.join(", ")}`, text: "" };
  return { kind: process.state === "active" ? "good" : process.state === "lost" ? "bad" : "between", word: process.state, text: "" };
}

/// The processes whose threads wait for cores, in a sentence; empty: none does.
export function coresText(processes: Process[]): string {
  // What a process that does not answer has told is old.
  const lacking = processes.filter((one) => one.unanswered_polls < 3 && one.cores_waited_for >= lacksCoresFrom);
  if (lacking.length === 0) return "";
  const threads = lacking.reduce((sum, one) => sum + one.cores_waited_for, 0);
  const who = lacking.length <= 4 ? lacking.map((one) => `rank ${one.rank}`).join(", ") : `${formatNumber(lacking.length)} processes`;
  return `${formatNumber(threads, 2)} threads wait for a core on average (${who}): there are too few cores for what runs on them, so steps take longer. That is no fault of a device.`;
}

/// For how long the job has told the same. By this machine's clock alone: that of the job may be another.
export class Staleness {
  private updatedMs = 0;
  private sinceMs = 0;

  seconds(updatedMs: number, nowMs: number): number {
    if (updatedMs !== this.updatedMs) {
      this.updatedMs = updatedMs;
      this.sinceMs = nowMs;
    }
    return updatedMs === 0 ? 0 : Math.max(0, (nowMs - this.sinceMs) / 1000);
  }
}
