// Why a device waits: from it to what it waits for, and on, to whoever does not wait for a device.

import type { Device, Frame, Plan } from "./api.js";
import { describeAction, inputsOf, parseActions, produces, type Action } from "./actions.js";
import { formatSeconds } from "./format.js";

export interface WaitLink {
  device: number | null;
  rank: number | null;
  text: string;
  /// How long it has been so, in seconds; null: not known.
  for_s: number | null;
  isCulprit: boolean;
}

/// A process that has not reported for as long is shown as the reason.
const silentAfterMs = 3000;

interface Place {
  run: number;
  position: number;
}

const isBefore = (left: Place, right: Place) => left.run < right.run || (left.run === right.run && left.position < right.position);

/// Where in its list a device makes what `wanted` stands for; null: it is not in the plan.
function placeOf(frame: Frame, wanted: Action): { device: number; position: number } | null {
  for (const one of frame.plan?.devices ?? []) {
    if (!one.stages.includes(wanted.stage)) continue;
    const position = one.actions.findIndex((text) => parseActions(text).some((done) => produces(done, wanted)));
    if (position >= 0) return { device: one.device, position };
  }
  return null;
}

function link(device: Device | null, text: string, isCulprit: boolean, for_s: number | null = device?.at_position_s ?? null): WaitLink {
  return { device: device?.device ?? null, rank: device?.rank ?? null, text, for_s, isCulprit };
}

/// What keeps the whole job, if anything does.
function reasonOfJob(frame: Frame): WaitLink | null {
  const { job } = frame;
  if (job.is_paused) return link(null, "The job is paused.", true);
  if (job.state === "finding" || job.state === "restoring")
    return link(null, `A recovery is under way: generation ${job.generation} is ${job.state === "finding" ? "finding copies of" : "restoring"} the state.`, true);
  if (job.state === "gathering") return link(null, "The programs have not all entered the next call: the job is between calls.", true);
  return null;
}

/// A process that cannot do anything; null: it seems well.
function reasonOfNode(frame: Frame, rank: number): string | null {
  const process = frame.processes.find((one) => one.rank === rank);
  if (!process) return `Rank ${rank} has not reported yet.`;
  if (process.state === "lost") return `The process of rank ${rank} is lost.`;
  if (process.state !== "active") return `The process of rank ${rank} (pid ${process.pid}) is ${process.state}.`;
  const silent = frame.job.updated_ms - process.reported_ms;
  if (silent > silentAfterMs)
    return `The process of rank ${rank} (pid ${process.pid} on ${process.host}) has not answered for ${formatSeconds(silent / 1000)}: it may be stopped or hang.`;
  return null;
}

function slowest(frame: Frame, but: Set<number>): Device | null {
  let found: Device | null = null;
  for (const one of frame.devices) {
    if (but.has(one.device) || one.activity === "idle") continue;
    if (!found || isBefore({ run: one.run, position: one.position }, { run: found.run, position: found.position })) found = one;
  }
  return found;
}

/// The axes of the mesh along which lanes run these actions together.
function jointAxes(plan: Plan, actions: Action[]): Set<string> {
  const axes = new Set<string>();
  for (const one of actions) {
    if (one.kind === "G") axes.add(one.axis ?? "dp");
    for (const row of plan.joint) if (row.stage === one.stage && row.kind === one.kind) axes.add(row.axis);
  }
  return axes;
}

/// Whether two devices do the same in lanes that differ along these axes at most.
function isAlong(axes: Set<string>, plan: Plan, left: number, right: number): boolean {
  const place = (device: number) => {
    const lane = Math.floor(device / plan.devices.length);
    return { device: device % plan.devices.length, dp: Math.floor(lane / plan.num_slices), tp: lane % plan.num_slices };
  };
  const one = place(left), other = place(right);
  return one.device === other.device && (axes.has("dp") || one.dp === other.dp) && (axes.has("tp") || one.tp === other.tp);
}

/// A device of another lane that has yet to do its part of what all run together; null: all wait within it. In a G
/// also one that computes beyond it: it may have put off its part, which it does between two layers.
function laneOutside(frame: Frame, device: Device): { device: Device; lanes: string } | null {
  const { plan } = frame;
  if (!plan || device.action === null) return null;
  const actions = parseActions(device.action);
  const axes = jointAxes(plan, actions);
  if (axes.size === 0) return null;
  const others = frame.devices.filter((other) => other.device !== device.device && isAlong(axes, plan, other.device, device.device));
  const lanes = axes.size > 1 ? "lanes" : axes.has("tp") ? "slices" : "replicas";
  const found =
    others.find((other) => isBefore(other, device)) ??
    (actions.some((one) => one.kind === "G")
      ? others.find(isBusy)
      : others.find((other) => !isBefore(device, other) && (other.activity !== "waiting_for_tensor" || typeof producerOf(frame, other) === "object")));
  return found ? { device: found, lanes } : null;
}

/// Whether it does something itself, rather than wait for others.
function isBusy(device: Device): boolean {
  return device.activity === "computing" || device.activity === "applying" || device.activity === "copying_state";
}

/// The device that has yet to make an input that `device` waits for; "sent": all are made, or it takes none.
function producerOf(frame: Frame, device: Device): { device: Device; wanted: string } | "sent" | null {
  const { plan } = frame;
  if (!plan || device.action === null) return null;
  let known = false;
  for (const action of parseActions(device.action))
    for (const wanted of inputsOf(action, plan.num_stages)) {
      const place = placeOf(frame, wanted);
      // Lanes have the same lists, each on devices of its own.
      const firstOfLane = Math.floor(device.device / plan.devices.length) * plan.devices.length;
      const maker = place && frame.devices.find((one) => one.device === firstOfLane + place.device);
      if (!place || !maker || maker.device === device.device) continue;
      known = true;
      if (!isBefore({ run: device.run, position: place.position }, maker))
        return { device: maker, wanted: plan.devices.find((one) => one.device === place.device)?.actions[place.position] ?? "" };
    }
  return known ? "sent" : null;
}

/// From `start` to the culprit. The last link is the culprit; a circle, which a checked plan does not have, ends where
/// it closes.
export function waitChain(frame: Frame, start: number): WaitLink[] {
  const links: WaitLink[] = [];
  const seen = new Set<number>();
  let device: Device | null = frame.devices.find((one) => one.device === start) ?? null;
  if (!device) return [link(null, `Device ${start} has not reported.`, true)];
  for (;;) {
    const ofNode = reasonOfNode(frame, device.rank);
    if (ofNode) return [...links, link(device, ofNode, true)];
    if (seen.has(device.device)) return [...links, link(device, `Device ${device.device} again: the positions were read at different times. Look again.`, true)];
    seen.add(device.device);
    const named = `Device ${device.device}`;
    if (isBusy(device)) {
      const computes = `computes ${device.action ?? ""}: ${describeAction(device.action)}`;
      const what = device.activity === "applying" ? (device.action ? "applies the optimizer" : "finishes what is queued") : device.activity === "copying_state" ? "copies its state" : computes;
      return [...links, link(device, `${named} ${what}.`, true)];
    }
    if (device.activity === "waiting_for_samples") {
      const loader = frame.actors.find((one) => one.role === "loader" && one.rank === device!.rank && one.state !== "lost");
      const state = loader && loader.state !== "running" ? `, which has ${loader.state}` : "";
      return [...links, link(device, `${named} waits for samples from the loader of rank ${device.rank}${state}.`, true)];
    }
    if (device.activity === "idle") {
      const ofJob = reasonOfJob(frame);
      links.push(link(device, `${named} has done all that was granted to it.`, false));
      if (ofJob) return [...links, ofJob];
      const next = slowest(frame, seen);
      if (!next) {
        links[links.length - 1]!.isCulprit = true;
        return links;
      }
      device = next;
      continue;
    }
    const producer = producerOf(frame, device);
    const ofJob = reasonOfJob(frame);
    const outside: { device: Device; lanes: string } | null = producer === "sent" || producer === null ? laneOutside(frame, device) : null;
    if (outside && !ofJob) {
      links.push(link(device, `${named} waits within ${device.action}, which all ${outside.lanes} run together, for device ${outside.device.device}.`, false));
      device = outside.device;
      continue;
    }
    if (producer === "sent")
      return [...links, link(device, `${named} waits for the tensor of ${device.action}, which has been made: it is being sent, or just arrived.`, true)];
    if (producer === null || ofJob) {
      links.push(link(device, `${named} waits for a tensor for ${device.action ?? "its next action"}.`, !ofJob));
      if (ofJob) links.push(ofJob);
      return links;
    }
    links.push(link(device, `${named} waits before ${device.action} for ${producer.wanted} of device ${producer.device.device}.`, false));
    device = producer.device;
  }
}
