// Why the devices of a measured step were idle, beside the same step as simulated.
//
// Every gap before an action is cut at the time its last input from another device was made:
//
//   gap      |--------- producer still at work ---------|--- input is made, action has not begun ---|
//            |- as long as in the plan -|- longer ------|
//   reason     warm-up or dependency   straggler or cores  communication
//
// A planned gap before a device's first action, or after its last one, is warm-up (or drain); between actions
// it is a dependency. Gaps before actions with no input from another device are dependencies too: on samples, or on
// a step of the same device. A producer whose process lacks cores is no straggler. What a recovery took between two steps is told apart by the job's list of recoveries.

import type { Recovery, Step, TimedAction, Timeline } from "./api.js";
import { inputsOf, parseActions, produces, type Action } from "./actions.js";

export const idleReasons = ["warm-up", "dependency", "communication", "straggler", "cores", "recovery"] as const;
export type IdleReason = (typeof idleReasons)[number];

export interface IdleSpan {
  reason: IdleReason;
  begin: number;
  end: number;
}

export interface DeviceIdle {
  spans: IdleSpan[];
  seconds: Record<IdleReason, number>;
  busy: number;
}

function noSeconds(): Record<IdleReason, number> {
  return { "warm-up": 0, dependency: 0, communication: 0, straggler: 0, cores: 0, recovery: 0 };
}

function busyOf(timeline: Timeline): number {
  let busy = 0;
  for (const device of timeline.devices) for (const one of device) busy += one.end - one.begin;
  return busy;
}

/// How long a unit of the simulation took in what was measured; 0: not known.
export function unitOf(simulated: Timeline | null, measured: Timeline): number {
  const planned = simulated ? busyOf(simulated) : 0;
  const numReplicas = simulated ? Math.max(1, Math.floor(measured.devices.length / simulated.devices.length)) : 1;
  return planned > 0 ? busyOf(measured) / (planned * numReplicas) : 0;
}

interface Ends {
  device: number;
  action: Action;
  end: number;
}

const keyOf = (action: Action) => `${action.stage}/${action.microbatch}`;

function endsByCell(timeline: Timeline): Map<string, Ends[]> {
  const found = new Map<string, Ends[]>();
  timeline.devices.forEach((actions, device) => {
    for (const one of actions)
      for (const action of parseActions(one.action)) {
        const key = keyOf(action);
        const known = found.get(key);
        if (known) known.push({ device, action, end: one.end });
        else found.set(key, [{ device, action, end: one.end }]);
      }
  });
  return found;
}

/// `numDevices`: of one replica. Replicas have the same actions, each on devices of its own.
/// The last input of an action from another device to be made; null: there is none.
function readyAt(text: string, device: number, numStages: number, ends: Map<string, Ends[]>, numDevices: number): Ends | null {
  const isSameReplica = (left: number, right: number) => Math.floor(left / numDevices) === Math.floor(right / numDevices);
  let ready: Ends | null = null;
  for (const action of parseActions(text))
    for (const input of inputsOf(action, numStages))
      for (const made of ends.get(keyOf(input)) ?? [])
        if (made.device !== device && isSameReplica(made.device, device) && produces(made.action, input) && (ready === null || made.end > ready.end)) ready = made;
  return ready;
}

/// The planned gap before each action of a device, by its name, and after its last one (key "").
function plannedGaps(simulated: Timeline | null, device: number, unit: number): Map<string, number> {
  const gaps = new Map<string, number>();
  let at = 0;
  for (const one of simulated?.devices[device] ?? []) {
    gaps.set(one.action, Math.max(0, one.begin - at) * unit);
    at = one.end;
  }
  gaps.set("", Math.max(0, (simulated?.makespan ?? 0) - at) * unit);
  return gaps;
}

class Splitter {
  readonly spans: IdleSpan[] = [];
  readonly seconds = noSeconds();

  add(reason: IdleReason, begin: number, end: number): void {
    if (end <= begin) return;
    this.spans.push({ reason, begin, end });
    this.seconds[reason] += end - begin;
  }

  /// A wait for others of which `planned` seconds were to be expected.
  addWait(reason: IdleReason, begin: number, end: number, planned: number, producerLacksCores: boolean): void {
    const expected = Math.min(end, begin + planned);
    this.add(reason, begin, expected);
    this.add(producerLacksCores ? "cores" : "straggler", Math.max(begin, expected), end);
  }
}

function splitDevice(
  actions: TimedAction[], device: number, makespan: number, numStages: number, ends: Map<string, Ends[]>,
  gaps: Map<string, number>, numDevices: number, lacksCores: (device: number) => boolean, last: number,
): DeviceIdle {
  const split = new Splitter();
  let at = 0;
  let busy = 0;
  actions.forEach((one, index) => {
    const reason: IdleReason = index === 0 ? "warm-up" : "dependency";
    const ready = readyAt(one.action, device, numStages, ends, numDevices);
    if (ready === null) split.add(reason, at, one.begin);
    else {
      const made = Math.min(Math.max(at, ready.end), one.begin);
      split.addWait(reason, at, made, gaps.get(one.action) ?? 0, lacksCores(ready.device));
      split.add("communication", made, one.begin);
    }
    busy += one.end - one.begin;
    at = Math.max(at, one.end);
  });
  split.addWait("warm-up", at, makespan, gaps.get("") ?? 0, lacksCores(last));
  return { spans: split.spans, seconds: split.seconds, busy };
}

/// For each device of `measured`. Their spans add up to all its idle time. Without a simulation what exceeds
/// it cannot be told, and nothing is a straggler's. `lacksCores`: whether threads of a device's process wait for cores.
export function splitIdleTime(measured: Timeline, simulated: Timeline | null, numStages: number, lacksCores: (device: number) => boolean = () => false): DeviceIdle[] {
  const unit = unitOf(simulated, measured);
  const ends = endsByCell(measured);
  const numDevices = simulated?.devices.length || measured.devices.length;
  const endOf = (device: number) => measured.devices[device]!.reduce((end, one) => Math.max(end, one.end), 0);
  let last = 0;
  for (let device = 1; device < measured.devices.length; ++device) if (endOf(device) > endOf(last)) last = device;
  return measured.devices.map((actions, device) => {
    const gaps = plannedGaps(simulated, device % numDevices, unit);
    if (!simulated) for (const one of [...actions.map((action) => action.action), ""]) gaps.set(one, Infinity);
    return splitDevice(actions, device, measured.makespan, numStages, ends, gaps, numDevices, lacksCores, last);
  });
}

/// What recoveries took of the time between a step and the one before it, in seconds.
export function recoveryTime(step: Step, recoveries: Recovery[]): number {
  const begin = step.at_ms - step.step_s * 1000;
  let seconds = 0;
  for (const one of recoveries) {
    const from = Math.max(begin, one.at_ms - one.total_s * 1000);
    const to = Math.min(step.at_ms, one.at_ms);
    if (to > from) seconds += (to - from) / 1000;
  }
  return Math.min(seconds, Math.max(0, step.step_s - step.span_s));
}
