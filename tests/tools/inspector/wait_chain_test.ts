import assert from "node:assert/strict";
import { test } from "node:test";
import type { Device } from "../../../tools/inspector/src/api.js";
import { waitChain } from "../../../tools/inspector/src/wait_chain.js";
import { device, shownFrame } from "./shown_frame.js";

const last = <T>(all: T[]) => all[all.length - 1]!;

test("a chain leads from any stage to the one that computes", () => {
  const frame = shownFrame();
  for (const start of [0, 1, 2, 3]) {
    const chain = waitChain(frame, start);
    assert.deepEqual(chain.map((one) => one.device), [0, 1, 2, 3].slice(start));
    assert.deepEqual(chain.map((one) => one.isCulprit), chain.map((_, index) => index === chain.length - 1));
    assert.match(last(chain).text, /Device 3 computes 3B0: backward of microbatch 0 in stage 3/);
  }
});

test("what the device at the end of a chain does is told", () => {
  const frame = shownFrame();
  for (const [activity, text] of [["applying", "applies the optimizer"], ["copying_state", "copies its state"]] as const) {
    frame.devices[3] = device(3, activity, 2);
    assert.equal(last(waitChain(frame, 3)).text, `Device 3 ${text}.`);
  }
});

test("who waits for samples, or lost its process, or does not answer, is the culprit", () => {
  const samples = shownFrame();
  samples.devices = [device(0, "waiting_for_samples", 0), device(1, "waiting_for_tensor", 0), device(2, "waiting_for_tensor", 0), device(3, "waiting_for_tensor", 0)];
  assert.match(last(waitChain(samples, 3)).text, /Device 0 waits for samples from the loader of rank 0/);
  const silent = shownFrame();
  silent.processes[2]!.reported_ms -= 8000;
  assert.match(last(waitChain(silent, 0)).text, /rank 2 .* has not answered for 8 s/);
  const joining = shownFrame();
  joining.processes[3]!.state = "joining";
  assert.match(last(waitChain(joining, 0)).text, /rank 3 .* is joining/);
});

test("a tensor that was made and is not there yet ends the chain", () => {
  const frame = shownFrame();
  frame.devices[3] = device(3, "computing", 2);
  const chain = waitChain(frame, 2);
  assert.equal(chain.length, 1);
  assert.match(chain[0]!.text, /which has been made/);
});

test("a producer in the run before has not made it, one in the next has", () => {
  const frame = shownFrame();
  frame.devices[3] = device(3, "computing", 5, { run: 2 });
  assert.equal(last(waitChain(frame, 2)).device, 3);
  frame.devices[3] = device(3, "computing", 0, { run: 4 });
  assert.equal(waitChain(frame, 2).length, 1);
});

test("a paused or recovering job says so, and an idle device names the slowest", () => {
  const paused = shownFrame();
  paused.devices = paused.devices.map((one) => ({ ...one, activity: "idle" }));
  paused.job.is_paused = true;
  assert.match(last(waitChain(paused, 1)).text, /paused/);
  const restoring = shownFrame();
  restoring.job.state = "restoring";
  assert.match(last(waitChain(restoring, 1)).text, /recovery is under way/);
  const idle = shownFrame();
  idle.devices[0] = device(0, "idle", 9);
  assert.equal(last(waitChain(idle, 0)).device, 3);
});

test("positions that form a circle end, and so do chains to what has not reported", () => {
  const frame = shownFrame();
  frame.devices = [device(0, "idle", 0), device(1, "idle", 0)];
  assert.ok(waitChain(frame, 0).length <= 3);
  assert.match(waitChain(frame, 7)[0]!.text, /has not reported/);
  frame.plan = null;
  frame.devices = [device(0, "waiting_for_tensor", 4)];
  assert.equal(waitChain(frame, 0).length, 1);
});

test("a device that waits within what all replicas run together waits for the replica that does not", () => {
  const frame = shownFrame(4);
  // Two replicas of two stages; stage 1 is run together.
  frame.plan = {
    schedule: "gpipe", num_stages: 2, num_microbatches: 2, steps_per_run: 1, num_slices: 1, joint: ["F", "B"].map((kind) => ({ stage: 1, kind, axis: "dp" })),
    devices: [0, 1].map((stage) => ({ device: stage, rank: stage, stages: [stage], actions: ["F0", "F1", "B0", "B1"].map((each) => `${stage}${each}`) })),
  };
  const waiting = (number: number, position: number) => device(number, "waiting_for_tensor", position, { action: frame.plan!.devices[number % 2]!.actions[position]! });
  frame.devices = [waiting(0, 2), waiting(1, 1), waiting(2, 2), device(3, "computing", 1, { action: "1F1" })];
  assert.match(waitChain(frame, 1)[0]!.text, /Device 1 waits within 1F1, which all replicas run together, for device 3/);
  assert.equal(last(waitChain(frame, 0)).device, 3);
  // Replica 1 has not come to it: its stage 0 computes.
  frame.devices[2] = device(2, "computing", 1, { action: "0F1" });
  frame.devices[3] = waiting(3, 1);
  assert.deepEqual(waitChain(frame, 1).map((one) => one.device), [1, 3, 2]);
  // All wait within it.
  frame.devices[2] = waiting(2, 2);
  assert.equal(waitChain(frame, 1).length, 1);
});

test("slices of one replica wait for each other, and not for those of another", () => {
  const frame = shownFrame(4);
  // Two replicas of two slices, a stage each.
  frame.plan = {
    schedule: "gpipe", num_stages: 1, num_microbatches: 1, steps_per_run: 1, num_slices: 2, joint: [{ stage: 0, kind: "F", axis: "tp" }],
    devices: [{ device: 0, rank: 0, stages: [0], actions: ["0F0", "0B0", "0Gtp", "0G", "0A"] }],
  };
  const at = (number: number, activity: Device["activity"], position: number) => device(number, activity, position, { action: frame.plan!.devices[0]!.actions[position]! });
  frame.devices = [at(0, "computing", 0), at(1, "computing", 0), at(2, "waiting_for_tensor", 0), at(3, "computing", 0)];
  assert.match(waitChain(frame, 2)[0]!.text, /Device 2 waits within 0F0, which all slices run together, for device 3/);
  frame.devices = [at(0, "computing", 1), at(1, "waiting_for_tensor", 2), at(2, "computing", 1), at(3, "computing", 1)];
  assert.match(waitChain(frame, 1)[0]!.text, /Device 1 waits within 0Gtp, which all slices run together, for device 0/);
  frame.devices = [at(0, "computing", 1), at(1, "waiting_for_tensor", 3), at(2, "computing", 1), at(3, "computing", 2)];
  assert.match(waitChain(frame, 1)[0]!.text, /Device 1 waits within 0G, which all replicas run together, for device 3/);
});

test("a device that waits in a G waits for the replica before it, then for one that computes beyond it", () => {
  const frame = shownFrame(2);
  frame.plan = {
    schedule: "gpipe", num_stages: 1, num_microbatches: 1, steps_per_run: 1, num_slices: 1, joint: [],
    devices: [{ device: 0, rank: 0, stages: [0], actions: ["0F0", "0B0", "0G", "0A"] }],
  };
  const waiting = device(0, "waiting_for_tensor", 2, { action: "0G" });
  frame.devices = [waiting, device(1, "computing", 1, { action: "0B0" })];
  assert.match(waitChain(frame, 0)[0]!.text, /Device 0 waits within 0G, which all replicas run together, for device 1/);
  assert.match(last(waitChain(frame, 0)).text, /Device 1 computes 0B0/);
  frame.devices[1] = device(1, "computing", 0, { action: "0F0", run: waiting.run + 1 });
  assert.match(last(waitChain(frame, 0)).text, /Device 1 computes 0F0/);
  frame.devices[1] = { ...waiting, device: 1 };
  assert.equal(waitChain(frame, 0).length, 1);
});
