import assert from "node:assert/strict";
import { test } from "node:test";
import { idleReasons, recoveryTime, splitIdleTime, unitOf } from "../../../tools/inspector/src/idle_time.js";
import type { Recovery, Step } from "../../../tools/inspector/src/api.js";
import { same, simulate } from "./shown_frame.js";

const planned = simulate(same(1), same(2));
const near = (left: number, right: number) => assert.ok(Math.abs(left - right) < 1e-9, `${left} is not ${right}`);
const splitOf = (forward: number[], backward: number[], delay = 0) => splitIdleTime(simulate(forward, backward, delay, "s"), planned, 4);

test("the reasons of a device's idle time add up to all of it", () => {
  for (const delay of [0, 0.003])
    for (const slow of [0, 2]) {
      const forward = same(0.01);
      forward[slow]! *= 3;
      const measured = simulate(forward, same(0.02), delay, "s");
      splitIdleTime(measured, planned, 4).forEach((one, device) => {
        near(idleReasons.reduce((sum, reason) => sum + one.seconds[reason], 0), measured.idle[device]!);
        near(one.busy + measured.idle[device]!, measured.makespan);
        for (const span of one.spans) assert.ok(span.end > span.begin && span.begin >= 0 && span.end <= measured.makespan + 1e-9);
      });
    }
});

test("a step that runs as planned waits for nobody's lateness", () => {
  for (const one of splitOf(same(0.01), same(0.02))) {
    near(one.seconds.straggler, 0);
    near(one.seconds.communication, 0);
  }
  // The last stage of 1F1B is idle at both ends only, the first one in between only.
  const [first, , , last] = splitOf(same(0.01), same(0.02));
  near(first!.seconds["warm-up"], 0);
  near(first!.seconds.dependency, 3 * 0.03);
  near(last!.seconds.dependency, 0);
  near(last!.seconds["warm-up"], 3 * 0.03);
});

test("tensors that are late cost communication", () => {
  const [, second] = splitOf(same(0.01), same(0.02), 0.004);
  assert.ok(second!.seconds.communication >= 0.004);
  assert.ok(splitOf(same(0.01), same(0.02), 0)[1]!.seconds.communication < 1e-9);
});

test("a slow stage costs the others time as a straggler, and not itself", () => {
  const forward = same(0.01);
  forward[2] = 0.05;
  const split = splitOf(forward, same(0.02));
  assert.ok(split[3]!.seconds.straggler > 0.02);
  assert.ok(split[2]!.seconds.straggler < split[3]!.seconds.straggler / 4);
});

test("a slow stage whose process lacks cores is no straggler", () => {
  const forward = same(0.01);
  forward[2] = 0.05;
  const split = splitIdleTime(simulate(forward, same(0.02), 0, "s"), planned, 4, (device) => device === 2);
  const all = splitOf(forward, same(0.02));
  assert.ok(split[3]!.seconds.cores > 0.02);
  split.forEach((one, device) => near(one.seconds.cores + one.seconds.straggler, all[device]!.seconds.straggler));
  for (const one of splitIdleTime(simulate(forward, same(0.02), 0, "s"), planned, 4, () => true)) near(one.seconds.straggler, 0);
});

test("without a plan to compare with nobody is called a straggler", () => {
  const forward = same(0.01);
  forward[2] = 0.05;
  for (const one of splitIdleTime(simulate(forward, same(0.02), 0, "s"), null, 4)) near(one.seconds.straggler, 0);
});

test("a unit of the plan is as long as what was computed in it", () => near(unitOf(planned, simulate(same(0.01), same(0.02), 0, "s")), 0.01));

test("a recovery counts as far as it lies in the time before the step", () => {
  const step = { step: 5, at_ms: 10_000, step_s: 2, span_s: 0.5 } as Step;
  const recovery = (at_ms: number, total_s: number) => ({ at_ms, total_s }) as Recovery;
  near(recoveryTime(step, [recovery(9_000, 0.25)]), 0.25);
  near(recoveryTime(step, [recovery(8_100, 0.5)]), 0.1);
  near(recoveryTime(step, [recovery(7_000, 0.5)]), 0);
  near(recoveryTime(step, [recovery(10_000, 30)]), 1.5);
});

test("replicas of a pipeline do not wait for each other's tensors", () => {
  const one = simulate(same(0.01), same(0.02), 0, "s");
  const slow = simulate(same(0.013), same(0.026), 0, "s");
  const both = { ...one, makespan: slow.makespan, devices: [...one.devices, ...slow.devices] };
  const split = splitIdleTime(both, planned, 4);
  assert.equal(split.length, 8);
  for (const each of split) near(each.seconds.communication, 0);
});
