// A job of four stages in 1F1B, as the API shows it, for tests: any number of processes beside.

import type { Actor, Device, Frame, Link, Process, Timeline } from "../../../tools/inspector/src/api.js";

const microbatches = 4;
const stages = 4;

/// 1F1B's list of one device.
export function actionsOf(stage: number): string[] {
  const actions: string[] = [];
  const ahead = Math.min(microbatches, stages - stage);
  let forward = 0;
  let backward = 0;
  while (forward < ahead) actions.push(`${stage}F${forward++}`);
  while (backward < microbatches) {
    actions.push(`${stage}B${backward++}`);
    if (forward < microbatches) actions.push(`${stage}F${forward++}`);
  }
  actions.push(`${stage}A`);
  return actions;
}

/// Runs the plan with these times of a forward and a backward on each device; `delay` is that of each tensor.
export function simulate(forward: number[], backward: number[], delay = 0, unit = "forwards of one microbatch"): Timeline {
  const devices = forward.map((_, device) => ({ list: actionsOf(device), next: 0, at: 0, done: [] as { action: string; begin: number; end: number }[] }));
  const ends = new Map<string, number>();
  for (let progress = true; progress; ) {
    progress = false;
    devices.forEach((device, stage) => {
      while (device.next < device.list.length) {
        const action = device.list[device.next]!;
        const isForward = action.includes("F");
        const number = action.slice(action.search(/[A-Z]/) + 1);
        const input = action.endsWith("A") ? null : isForward ? (stage > 0 ? `${stage - 1}F${number}` : null) : stage + 1 < stages ? `${stage + 1}B${number}` : null;
        if (input !== null && !ends.has(input)) return;
        const begin = Math.max(device.at, input === null ? 0 : ends.get(input)! + delay);
        const end = begin + (action.endsWith("A") ? 0 : isForward ? forward[stage]! : backward[stage]!);
        ends.set(action, end);
        device.done.push({ action, begin, end });
        device.at = end;
        ++device.next;
        progress = true;
      }
    });
  }
  const makespan = Math.max(...devices.map((device) => device.at));
  const idle = devices.map((device) => makespan - device.done.reduce((sum, one) => sum + one.end - one.begin, 0));
  return { unit, makespan, idle, devices: devices.map((device) => device.done) };
}

export const same = (value: number) => Array.from({ length: stages }, () => value);

function actor(rank: number, role: string, number: number, more: Partial<Actor> = {}): Actor {
  const id = role === "supervisor" ? `${rank}#0/supervisor` : `${rank}#0/${role}/${number}`;
  return { id, parent: role === "supervisor" ? null : `${rank}#0/supervisor`, role, number, replica: role === "stage" ? 0 : null, slice: role === "stage" ? 0 : null, rank, incarnation: 0, state: "running", restarts: 0, reason: null, mailbox_depth: null, ...more };
}

export function device(number: number, activity: string, position: number, more: Partial<Device> = {}): Device {
  return { device: number, rank: number, place: "cpu", memory_bytes: 1000, peak_memory_bytes: 2000, memory_limit_bytes: null, host_memory_bytes: 0, activity, call: 1, call_kind: "train", run: 3, position, action: actionsOf(number)[position] ?? null, at_position_s: 0.5, ...more };
}

export function link(from: number, to: number): Link {
  return {
    from, to, tensors_sent: 10, tensors_received: 10, tensors_in_flight: 2, tensor_bytes_sent: 1000, tensor_bytes_received: 1000, tensor_bytes_in_flight: 200,
    frames_sent: 5, frames_received: 5, frame_bytes_sent: 700, frame_bytes_received: 700, frame_bytes_queued: 0, bytes_per_s: 2e6, tensors_per_s: 10, frames_per_s: 1,
  };
}

export function shownFrame(numRanks = 4, actorsOfRank = 5, nowMs = 1_700_000_000_000): Frame {
  const processes: Process[] = [];
  const actors: Actor[] = [];
  const roles = ["stage", "device", "loader", "peer_copy_store", "snapshot_writer"];
  for (let rank = 0; rank < numRanks; ++rank) {
    processes.push({ rank, incarnation: 0, pid: 4000 + rank, host: "alpha", state: "active", generation: 1, reported_ms: nowMs, unanswered_polls: 0, cores_waited_for: 0.04 });
    actors.push(actor(rank, "supervisor", rank));
    for (let index = 0; index < actorsOfRank; ++index) actors.push(actor(rank, roles[index % roles.length]!, index < 2 ? rank : index));
  }
  return {
    at_ms: nowMs,
    job: {
      job_id: "job-7", world_size: numRanks, rank: 0, generation: 1, started_ms: nowMs - 60_000, updated_ms: nowMs, state: "running", call: 1, call_kind: "train",
      step: 40, end_step: 100, is_stopping: false, is_paused: false, loss: 2.5, steps_per_s: 10, samples_per_s: 320, num_recoveries: 0, recoveries: [],
    },
    processes, replaced: [], actors,
    devices: [device(0, "waiting_for_tensor", 4), device(1, "waiting_for_tensor", 3), device(2, "waiting_for_tensor", 2), device(3, "computing", 1)],
    links: processes.slice(1).map((process) => link(process.rank - 1, process.rank)),
    linkTotals: processes.map((process) => ({ rank: process.rank, tensor_bytes_sent: 1000, tensor_bytes_received: 1000, bytes_sent_per_s: 2e6, bytes_received_per_s: 2e6, stale_frames: 0, bad_frames: 0 })),
    plan: { schedule: "1f1b", num_stages: stages, num_microbatches: microbatches, steps_per_run: 1, num_slices: 1, joint: [], devices: same(0).map((_, stage) => ({ device: stage, rank: stage, stages: [stage], actions: actionsOf(stage) })) },
    simulated: simulate(same(1), same(2)),
    measured: { step: 40, timeline: simulate(same(0.01), same(0.02), 0.001, "s") },
    snapshots: { folder: "/tmp/snapshots", committed_step: 40, step_on_disk: 32, pending: 0 },
    findings: null,
  };
}
