// The plan of a step, below it the newest step as measured, and why devices were idle.

import type { AppActions, AppState } from "../app_state.js";
import type { Frame, Timeline } from "../api.js";
import { describeAction } from "../actions.js";
import { h, type Child, type VNode } from "../dom.js";
import { formatNumber, formatPercent, formatSeconds } from "../format.js";
import { coresText, lacksCoresFrom } from "../job_health.js";
import { idleReasons, recoveryTime, splitIdleTime, unitOf, type DeviceIdle } from "../idle_time.js";
import { actionBars, idleBars, ticks, type Bar } from "../timeline_layout.js";
import { button, nothingYet, table } from "./pieces.js";

const rowPx = 76;
const axisPx = 22;
const tagsPx = 60;
/// Top and height of the bars of a device.
const plannedBars = { y: 6, height: 20 };
const measuredBars = { y: 31, height: 24 };
const idleBarsAt = { y: 58, height: 10 };

function bars(shown: Bar[], { y, height }: { y: number; height: number }): VNode[] {
  return shown.map((bar, index) => {
    const rect = h("rect", { x: bar.x.toFixed(2), y, width: Math.max(0.5, bar.width - (bar.width > 4 ? 0.8 : 0)).toFixed(2), height, class: `bar-${bar.kind}` }, h("title", null, bar.title));
    if (bar.label === "") return h("g", { key: `${y} ${index}` }, rect);
    return h("g", { key: `${y} ${index}` }, rect, h("text", { x: (bar.x + bar.width / 2).toFixed(2), y: y + height - 5, class: "bar-label" }, bar.label));
  });
}

interface Drawing {
  planned: Timeline | null;
  measured: Timeline | null;
  idle: DeviceIdle[];
  plannedPx: number;
  measuredPx: number;
  widthPx: number;
  labelPx: number;
  /// There is no room for what a device does now.
  isNarrow: boolean;
}

/// Names the bars of a device, each beside them.
function tags(drawing: Drawing, device: number): VNode {
  const tag = (text: string, { y, height }: { y: number; height: number }) => h("span", { key: text, style: { top: `${y + height / 2 - 7}px` } }, text);
  return h(
    "div", { class: "timeline-tags", style: { width: `${tagsPx}px` } },
    drawing.planned ? tag("plan", plannedBars) : null, drawing.measured ? tag("measured", measuredBars) : null, drawing.idle[device] ? tag("idle", idleBarsAt) : null,
  );
}

function rowOf(frame: Frame, device: number, drawing: Drawing): VNode {
  const numPlanned = frame.plan?.devices.length || 1;
  const known = frame.plan?.devices[device % numPlanned];
  const rank = frame.devices.find((one) => one.device === device)?.rank ?? known?.rank ?? null;
  const stages = known ? (known.stages.length > 3 ? `${known.stages.length} stages` : `stage ${known.stages.join(", ")}`) : "";
  const words = [rank === null ? "" : `rank ${rank}`, stages].filter((one) => one !== "");
  const placed = drawing.isNarrow ? words : [words.join(", ")];
  const now = frame.devices.find((one) => one.device === device);
  const plannedTitle = (text: string, length: number) => `planned ${text}: ${describeAction(text)}, ${length} of ${drawing.planned?.unit ?? "units"}`;
  return h(
    "div", { class: "timeline-row", key: String(device), style: { height: `${rowPx}px`, width: `${drawing.labelPx + drawing.widthPx}px` } },
    h("div", { class: "timeline-label", style: { width: `${drawing.labelPx}px` } },
      h("div", { class: "timeline-name" }, h("b", null, `device ${device}`),
        placed.map((line) => h("span", null, line)),
        drawing.isNarrow ? null : h("span", { class: "now" }, now ? `${now.activity === "computing" ? "" : `${now.activity.replaceAll("_", " ")} `}${now.action ?? ""}` : "")),
      tags(drawing, device)),
    h(
      "svg", { width: drawing.widthPx, height: rowPx, role: "img", "aria-label": `device ${device}: the plan above, as measured below, then idle time` },
      drawing.planned ? h("g", { key: "plan", class: "planned" }, bars(actionBars(drawing.planned, device % numPlanned, drawing.plannedPx, plannedTitle), plannedBars)) : null,
      drawing.measured ? bars(actionBars(drawing.measured, device, drawing.measuredPx, (text, length) => `${text}: ${describeAction(text)}, ${formatSeconds(length)}`), measuredBars) : null,
      drawing.idle[device] ? bars(idleBars(drawing.idle[device]!, drawing.measuredPx, (reason, length) => `idle: ${reason}, ${formatSeconds(length)}`), idleBarsAt) : null,
    ),
  );
}

function idleTable(idle: DeviceIdle[], makespan: number, recovery: number): VNode {
  const row = (name: string, one: DeviceIdle) => ({
    key: name,
    cells: [
      name, `${formatSeconds(one.busy)} (${formatPercent(one.busy / makespan)})`,
      ...idleReasons.map((reason) => {
        const seconds = reason === "recovery" ? recovery : one.seconds[reason];
        return seconds > 0 ? `${formatSeconds(seconds)}${reason === "recovery" ? "" : ` (${formatPercent(seconds / makespan)})`}` : "–";
      }),
    ],
  });
  const mean: DeviceIdle = { spans: [], seconds: { "warm-up": 0, dependency: 0, communication: 0, straggler: 0, cores: 0, recovery: 0 }, busy: 0 };
  for (const one of idle) {
    mean.busy += one.busy / idle.length;
    for (const reason of idleReasons) mean.seconds[reason] += one.seconds[reason] / idle.length;
  }
  return table("busy and idle time", ["device", "busy", ...idleReasons], [row("mean", mean), ...idle.slice(0, 64).map((one, device) => row(String(device), one))]);
}

function legend(): VNode {
  const entry = (kind: string, text: string) => h("span", { key: kind }, h("i", { class: `swatch fill-${kind}` }), text);
  return h(
    "p", { class: "legend", key: "legend" },
    entry("plan", "plan"), entry("measured", "measured"), h("span", { class: "gap" }, "actions:"),
    entry("forward", "forward"), entry("backward", "backward"), entry("weights", "weight gradient"), entry("other", "optimizer and others"),
    h("span", { class: "gap" }, "idle:"), idleReasons.filter((one) => one !== "recovery").map((one) => entry(one, one)),
  );
}

function axis(spanSeconds: number, { measuredPx, widthPx, labelPx }: Drawing): VNode {
  const tick = (at: number) => {
    const x = labelPx + at * measuredPx;
    const isLast = at * measuredPx + 50 > widthPx; // its text would be cut
    return h("g", { key: String(at) }, h("line", { x1: x, x2: x, y1: 16, y2: axisPx }), h("text", { x: isLast ? x - 3 : x + 3, y: 13, "text-anchor": isLast ? "end" : "start" }, formatSeconds(at)));
  };
  return h("svg", { class: "axis", width: labelPx + widthPx, height: axisPx, "aria-hidden": "true", key: "axis" }, ticks(spanSeconds, widthPx).map(tick));
}

function about(frame: Frame, unit: number): Child {
  const { step, timeline } = frame.measured;
  const { plan } = frame;
  const words = plan ? `${plan.schedule}, ${plan.num_stages} stages, ${plan.num_microbatches} microbatches. ` : "";
  if (!timeline) return h("p", { key: "about" }, `${words}No step has been measured yet: the bars are the plan, as simulated.`);
  const scale = unit > 0 ? ` One unit of the plan is drawn as ${formatSeconds(unit)}, so that the planned and the measured computing time are equal.` : "";
  return h("p", { key: "about", id: "measured-step" }, `${words}Step ${formatNumber(step)} as measured took ${formatSeconds(timeline.makespan)}. Above it, paler, is the plan of the same step.${scale}`);
}

export function timelineView(state: AppState, actions: AppActions): Child {
  const frame = state.frame!;
  const measured = frame.measured.timeline;
  const planned = frame.simulated;
  const numDevices = Math.max(measured?.devices.length ?? 0, planned?.devices.length ?? 0);
  if (numDevices === 0) return nothingYet("The job has no plan yet: it has not begun to train.");
  const unit = measured ? unitOf(planned, measured) : 0;
  const plannedSpan = (planned?.makespan ?? 0) * (unit || 1);
  const span = Math.max(plannedSpan, measured?.makespan ?? 0, 1e-9);
  const isNarrow = state.widthPx < 600;
  const labelPx = (isNarrow ? 80 : 168) + tagsPx;
  const widthPx = Math.max(200, (state.widthPx - labelPx - 24) * state.zoom);
  const pxPerSecond = (widthPx - 4) / span;
  const waitedFor = new Map(frame.processes.map((one) => [one.rank, one.cores_waited_for]));
  const rankOf = new Map(frame.devices.map((one) => [one.device, one.rank]));
  const lacksCores = (device: number) => (waitedFor.get(rankOf.get(device) ?? -1) ?? 0) >= lacksCoresFrom;
  const idle = measured ? splitIdleTime(measured, planned, frame.plan?.num_stages ?? 0, lacksCores) : [];
  const cores = coresText(frame.processes);
  const drawing: Drawing = { planned, measured, idle, plannedPx: pxPerSecond * (unit || 1), measuredPx: pxPerSecond, widthPx, labelPx, isNarrow };
  const rows = Array.from({ length: numDevices }, (_, device) => device);
  const ofStep = state.steps.find((one) => one.step === frame.measured.step);
  const zoom = (factor: number) => actions.change((changed) => { changed.zoom = Math.min(64, Math.max(1, changed.zoom * factor)); });
  return [
    about(frame, unit),
    cores === "" ? null : h("p", { class: "notice", key: "cores", id: "cores" }, cores),
    h("div", { class: "bar-of-view", key: "zoom" }, legend(), h("span", { class: "buttons" }, button("−", () => zoom(0.5), { "aria-label": "zoom out", title: "zoom out (-)" }), button("+", () => zoom(2), { "aria-label": "zoom in", title: "zoom in (+)" }))),
    h(
      "div", { class: "timeline", key: "timeline", tabindex: "0", role: "region", "aria-label": "pipeline timeline", style: { height: `${Math.min(numDevices * rowPx + axisPx + 18, Math.max(260, state.heightPx - 330))}px` },
        onscroll: (event: Event) => { const top = (event.currentTarget as Element).scrollTop; actions.change((changed) => changed.scrollTops.set("timeline", top)); } },
      measured || unit > 0 ? axis(span, drawing) : null,
      virtualRows(state, rows, (device) => rowOf(frame, device, drawing), state.heightPx),
    ),
    measured ? idleTable(idle, measured.makespan, ofStep ? recoveryTime(ofStep, frame.job.recoveries) : 0) : null,
    measured ? h("p", { class: "note", key: "meaning" }, "warm-up: before a device's first action and after its last one, as long as planned; dependency: between two actions, as long as planned, or until samples or an action of the same device; straggler: longer than planned, since the maker of the input was late; cores: the same, where threads of the maker's process wait for a core: the machine has too few of them; communication: after the input was made, until the action began; recovery: between this step and the one before it.") : null,
  ];
}

function virtualRows(state: AppState, rows: number[], render: (device: number) => VNode, heightPx: number): Child {
  const top = state.scrollTops.get("timeline") ?? 0;
  const first = Math.max(0, Math.min(rows.length - 1, Math.floor(top / rowPx) - 2));
  const end = Math.min(rows.length, first + Math.ceil(heightPx / rowPx) + 4);
  return [
    h("div", { key: "above", class: "space", style: { height: `${first * rowPx}px` } }),
    rows.slice(first, end).map(render),
    h("div", { key: "below", class: "space", style: { height: `${(rows.length - end) * rowPx}px` } }),
  ];
}
