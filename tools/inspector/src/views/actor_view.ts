// All that is known of one actor.

import type { AppActions, AppState } from "../app_state.js";
import type { Actor, Device, Frame, Process } from "../api.js";
import { describeAction } from "../actions.js";
import { actorName } from "../actor_tree.js";
import { h, type Child } from "../dom.js";
import { formatAge, formatBytes, formatClock, formatNumber, formatSeconds } from "../format.js";
import { button, facts, nothingYet, pill } from "./pieces.js";

const many = <T>(value: T | null | undefined, show: (known: T) => Child): Child => (value === null || value === undefined ? null : show(value));

function processOf(frame: Frame, actor: Actor): Process | undefined {
  return [...frame.processes, ...frame.replaced].find((one) => one.rank === actor.rank && one.incarnation === actor.incarnation);
}

function ofDevice(device: Device, actions: AppActions): Child {
  return [
    facts([
      ["does", pill(device.activity)],
      ["action", device.action === null ? null : `${device.action}: ${describeAction(device.action)}`],
      ["for", formatSeconds(device.at_position_s)],
      ["call", `${device.call} (${device.call_kind.replaceAll("_", " ")})`],
      ["runs of the plan before", formatNumber(device.run)],
      ["place in its list", formatNumber(device.position)],
      ["computes on", device.place],
      ["memory there", `${formatBytes(device.memory_bytes)}, at most ${formatBytes(device.peak_memory_bytes)}${device.memory_limit_bytes === null ? "" : ` of ${formatBytes(device.memory_limit_bytes)}`}`],
      ["in the CPU's memory", device.place?.startsWith("cuda") ? formatBytes(device.host_memory_bytes) : null],
    ]),
    button("Why is it waiting?", () => actions.go("waits", String(device.device))),
  ];
}

function ofStage(frame: Frame, actor: Actor, actions: AppActions): Child {
  const device = frame.plan?.devices.find((one) => one.stages.includes(actor.number));
  if (!device) return null;
  return h("p", null, `Its actions are run by device ${device.device}. `, button("Why is it waiting?", () => actions.go("waits", String(device.device))));
}

function counters(actor: Actor): Child {
  const shown = facts([
    ["mailbox", many(actor.mailbox_depth, (depth) => `${formatNumber(depth)} messages`)],
    ["oldest message", many(actor.oldest_message_s, formatSeconds)],
    ["messages in", many(actor.messages_in, (count) => formatNumber(count))],
    ["messages out", many(actor.messages_out, (count) => formatNumber(count))],
    ["bytes in", many(actor.bytes_in, formatBytes)],
    ["bytes out", many(actor.bytes_out, formatBytes)],
    ["handler now runs for", actor.handler_running_s ? formatSeconds(actor.handler_running_s) : null],
    ["handler, median", many(actor.handler_p50_s, formatSeconds)],
    ["handler, 99 %", many(actor.handler_p99_s, formatSeconds)],
  ]);
  return shown.children.length > 0 ? [h("h3", null, "Messages"), shown] : null;
}

function controls(frame: Frame, actor: Actor, actions: AppActions): Child {
  if (!frame.job.control || actor.state === "lost") return null;
  const name = `${actorName(actor)} of rank ${actor.rank}`;
  const process = `the process of rank ${actor.rank}`;
  const pid = `Its process id is ${processOf(frame, actor)?.pid ?? "not known"}.`;
  return h(
    "p", { class: "buttons" },
    actor.parent === null
      ? null
      : [
          button("Restart actor", () => actions.control({ deed: `Restart ${name}`, detail: "Its supervisor starts it again. The job computes again what was lost with it, and the results stay the same bits.", action: "restart", body: { actor: actor.id } })),
          button("Kill actor", () => actions.control({ deed: `Kill ${name}`, detail: "It ends as if it had failed, and the job recovers from that.", action: "kill", body: { actor: actor.id } }), { class: "danger" }),
        ],
    button("Restart process", () => actions.control({ deed: `Restart ${process}`, detail: `The launcher replaces it, and its state comes back from a peer's memory or from disk. ${pid}`, action: "restart", body: { rank: actor.rank } })),
    button("Kill process", () => actions.control({ deed: `Kill ${process}`, detail: `It gets SIGKILL, as a crash would end it, and the job recovers from that. ${pid}`, action: "kill", body: { rank: actor.rank } }), { class: "danger" }),
  );
}

export function actorDetail(state: AppState, actions: AppActions, id: string): Child {
  const frame = state.frame!;
  const actor = frame.actors.find((one) => one.id === id);
  if (!actor) return nothingYet(`There is no actor ${id} at this time.`);
  const process = processOf(frame, actor);
  const device = actor.role === "device" && actor.state === "running" ? frame.devices.find((one) => one.rank === actor.rank && one.device === actor.number) : undefined;
  const name = `${actor.role} ${actor.number}`;
  const past = state.events.filter((one) => one.rank === actor.rank && one.at_ms <= frame.at_ms && (one.actor === name || one.kind === "process" || one.kind === "process_state" || one.kind === "recovery")).slice(-30).reverse();
  return [
    h("h2", { key: "name" }, actorName(actor)),
    facts([
      ["id", h("code", null, actor.id)],
      ["state", pill(actor.state)],
      ["started again", `${actor.restarts}×`],
      ["newest failure", actor.reason],
      ["process", process ? `rank ${actor.rank}, pid ${process.pid} on ${process.host}, incarnation ${actor.incarnation}` : `rank ${actor.rank}`],
      ["process state", process ? pill(actor.state === "lost" ? "lost" : process.state) : null],
      ["last report", process ? `${formatAge(frame.job.updated_ms, process.reported_ms)} ago` : null],
    ]),
    controls(frame, actor, actions),
    device ? ofDevice(device, actions) : null,
    actor.role === "stage" ? ofStage(frame, actor, actions) : null,
    counters(actor),
    h("h3", { key: "past" }, "Newest events"),
    past.length === 0 ? nothingYet("No event of it is known.") : h("ul", { class: "past" }, past.map((one) => h("li", { key: one.key, class: one.level }, h("time", null, formatClock(one.at_ms)), ` ${one.text}`))),
  ];
}

export function actorView(state: AppState, actions: AppActions): Child {
  return h("div", { class: "card single", key: "actor" }, button("← Supervision tree", () => actions.go("tree")), actorDetail(state, actions, state.route.of));
}
