// Loss, throughput, idle time, memory and membership at one look.

import type { AppActions, AppState } from "../app_state.js";
import { type Frame, type Process, type Step } from "../api.js";
import { h, type Child, type VNode } from "../dom.js";
import { formatAge, formatBytes, formatNumber, formatPercent, formatSeconds, formatClock } from "../format.js";
import { coresText, healthOf, processHealth, type Health } from "../job_health.js";
import { smooth, toLog, type Point } from "../series.js";
import { bubbleOf, stepsUntil, throughput } from "../steps.js";
import { button, card, chart, facts, pill, table } from "./pieces.js";

function findings(frame: Frame, health: Health, actions: AppActions): Child {
  if (!frame.findings || frame.findings.length === 0) {
    if (health.text === "") return null;
    return h("p", { class: health.kind === "good" ? "all-well" : "notice", key: "health", id: "health", role: "status" }, health.text);
  }
  return h(
    "section", { class: "findings", key: "findings", "aria-label": "findings" },
    frame.findings.map((one, index) =>
      h(
        "p", { key: `${one.kind} ${one.actor} ${one.rank} ${one.device} ${index}` },
        h("strong", null, one.kind.replaceAll("_", " ")), ` for ${formatAge(frame.at_ms, one.since_ms)}: ${one.text} `,
        one.actor ? button("Show the actor", () => actions.go("actor", one.actor!)) : null,
        one.device !== null && one.device !== undefined ? button("Why is it waiting?", () => actions.go("waits", String(one.device))) : null,
      ),
    ),
  );
}

function progress(frame: Frame): Child {
  const { step, end_step } = frame.job;
  if (step === null) return null;
  const known = end_step !== null && end_step > 0;
  return h("div", { class: "progress-row" }, h("progress", { max: known ? String(end_step) : "1", value: known ? step : 0, "aria-label": "optimizer steps of this call" }),
    h("span", null, known ? `${formatNumber(step)} of ${formatNumber(end_step)} steps` : `${formatNumber(step)} steps`));
}

function memoryCard(processes: Process[]): Child {
  const known = processes.filter((one) => one.memory);
  if (known.length === 0) return null;
  const most = Math.max(1, ...known.map((one) => one.memory!.peak_bytes));
  const categories = ["parameters", "gradients", "optimizer", "activations", "other"] as const;
  return card(
    "Memory",
    h("p", { class: "legend" }, h("span", { key: "what" }, "tensors in CPU memory:"), categories.map((one) => h("span", { key: one }, h("i", { class: `swatch memory-${one}` }), one))),
    h("div", { class: "bars" }, known.slice(0, 64).map((process) => {
      const memory = process.memory!;
      return h(
        "div", { class: "bar-row", key: String(process.rank) },
        h("span", { class: "bar-name" }, `rank ${process.rank}`),
        h("span", { class: "bar", title: `at most ${formatBytes(memory.peak_bytes)}` }, categories.map((one) =>
          h("i", { key: one, class: `memory-${one}`, title: `${one}: ${formatBytes(memory[`${one}_bytes`])}`, style: { width: `${(memory[`${one}_bytes`] / most) * 100}%` } }))),
        h("span", { class: "bar-value" }, `${formatBytes(memory.current_bytes)}, at most ${formatBytes(memory.peak_bytes)}`,
          memory.resident_bytes ? h("span", { class: "note", title: `at most ${formatBytes(memory.peak_resident_bytes)}; with code, stacks and libraries` }, `; process ${formatBytes(memory.resident_bytes)}`) : null),
      );
    })),
    known.length > 64 ? h("p", null, `and ${known.length - 64} more processes: see the supervision tree`) : null,
  );
}

function membership(frame: Frame): VNode {
  const processes = frame.processes.slice(0, 200);
  const stateOf = (process: Process) => {
    const { word, kind } = processHealth(process, frame.findings ?? []);
    return pill(word, kind);
  };
  return card(
    `Processes: ${frame.processes.filter((one) => one.state === "active").length} of ${frame.job.world_size} active`,
    table("processes", ["rank", "state", "incarnation", "pid", "host", "threads that lack a core", "last report"], processes.map((one) => ({
      key: `${one.rank}`,
      cells: [one.rank, stateOf(one), one.incarnation, one.pid, one.host, formatNumber(one.cores_waited_for, 1), `${formatAge(frame.job.updated_ms, one.reported_ms)} ago`],
    }))),
    frame.processes.length > processes.length ? h("p", null, `and ${frame.processes.length - processes.length} more: see the supervision tree`) : null,
  );
}

function recoveries(frame: Frame): Child {
  const { recoveries: past, num_recoveries } = frame.job;
  if (past.length === 0) return null;
  const phases = ["detect_s", "fence_s", "quiesce_s", "respawn_s", "restore_s", "rebuild_s", "replay_s"] as const;
  return card(
    `Recoveries: ${num_recoveries}`,
    table("recoveries", ["at", "generation", "lost", "cause", "took", ...phases.map((one) => one.replace("_s", ""))], [...past].reverse().map((one) => ({
      key: `${one.generation} ${one.at_ms}`,
      cells: [formatClock(one.at_ms), one.generation, one.rank < 0 ? "–" : `rank ${one.rank}`, h("span", { class: "long" }, one.cause), formatSeconds(one.total_s), ...phases.map((phase) => formatSeconds(one[phase]))],
    }))),
  );
}

const smoothings: [string, number][] = [["none", 0], ["little", 0.6], ["some", 0.9], ["much", 0.98]];

function lossCard(steps: Step[], state: AppState, actions: AppActions): VNode {
  const frame = state.frame!;
  const values = steps.map((one) => ({ x: one.step, y: one.loss ?? NaN }));
  const placed = (points: Point[]) => (state.isLogLoss ? toLog(points) : points);
  const choice = (name: string, options: { text: string; value: string; isChosen: boolean }[], use: (value: string) => void) =>
    h("label", { key: name }, `${name} `, h("select", { id: `loss-${name}`, onchange: (event: Event) => use((event.currentTarget as HTMLSelectElement).value) },
      options.map((one) => h("option", { key: one.value, value: one.value, selected: one.isChosen }, one.text))));
  return h(
    "section", { class: "card wide", key: "Loss", "aria-label": "Loss" }, h("h2", null, "Loss"),
    h("div", { class: "chart-head" },
      h("p", { class: "figure", id: "loss" }, formatNumber(frame.job.loss, 5)),
      h("span", { class: "choices" },
        choice("scale", ["linear", "log"].map((one) => ({ text: one, value: one, isChosen: (one === "log") === state.isLogLoss })), (value) => actions.change((changed) => { changed.isLogLoss = value === "log"; })),
        choice("smoothing", smoothings.map(([text, weight]) => ({ text, value: String(weight), isChosen: weight === state.lossSmoothing })), (value) => actions.change((changed) => { changed.lossSmoothing = Number(value); })))),
    chart("loss by step", placed(smooth(values, state.lossSmoothing)), { fromZero: false, heightPx: 130, isLog: state.isLogLoss, behind: state.lossSmoothing > 0 ? placed(values) : [] }),
  );
}

function curves(steps: Step[], frame: Frame): VNode[] {
  const points = (of: (step: Step) => number | null) => steps.map((one) => ({ x: one.step, y: of(one) ?? NaN }));
  const newest = steps[steps.length - 1];
  const bubble = newest ? bubbleOf(newest) : null;
  return [
    card(
      "Throughput",
      h("p", { class: "figure" }, `${formatNumber(frame.job.samples_per_s)} samples/s`),
      chart("samples per second by step", throughput(steps, 20).map((y, index) => ({ x: steps[index]!.step, y })), { fromZero: true }),
      h("p", { id: "steps-per-second" }, `${formatNumber(frame.job.steps_per_s)} steps/s`),
    ),
    card(
      "Bubble",
      h("p", { class: "figure" }, formatPercent(bubble)),
      chart("idle part of the devices' time by step", points(bubbleOf), { fromZero: true, format: (value) => `${Math.round(value * 100)} %` }),
      h("p", null, newest ? `a step spans ${formatSeconds(newest.span_s)}, of which a device computes ${formatSeconds(newest.busy_s)}` : "no step yet"),
    ),
  ];
}

export function overviewView(state: AppState, actions: AppActions): Child {
  const frame = state.frame!;
  const steps = stepsUntil(state.steps, frame.at_ms);
  const { job } = frame;
  const health = healthOf(frame, !state.isLive || state.connection === "open", state.isLive ? state.staleS : 0);
  const cores = coresText(frame.processes);
  const resident = frame.processes.reduce((sum, one) => sum + (one.memory?.resident_bytes ?? 0), 0);
  const callText = job.call_kind === null ? "–" : `${job.call_kind.replaceAll("_", " ")} (call ${job.call})`;
  return [
    findings(frame, health, actions),
    cores === "" ? null : h("p", { class: "notice", key: "cores", id: "cores" }, cores),
    h(
      "div", { class: "cards", key: "cards" },
      card("Job", facts([
        ["state", pill(health.word, health.kind)],
        ["call", callText],
        ["generation", job.generation],
        ["runs for", formatAge(frame.at_ms, job.started_ms)],
        ["time left", job.seconds_left === null || job.seconds_left === undefined ? null : `${formatSeconds(Math.round(job.seconds_left))} of this call`],
        ["learning rate", job.learning_rate === null || job.learning_rate === undefined ? null : formatNumber(job.learning_rate)],
        ["memory", resident > 0 ? `${formatBytes(resident)} in ${formatNumber(frame.processes.length)} process${frame.processes.length === 1 ? "" : "es"}` : null],
        ["recoveries", job.num_recoveries],
      ]), progress(frame)),
      lossCard(steps, state, actions),
      curves(steps, frame),
      memoryCard(frame.processes),
    ),
    h("div", { class: "wide-cards", key: "wide" }, membership(frame), recoveries(frame)),
  ];
}
