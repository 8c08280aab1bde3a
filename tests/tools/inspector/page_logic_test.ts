import assert from "node:assert/strict";
import { test } from "node:test";
import { describeAction, inputsOf, kindOf, parseActions } from "../../../tools/inspector/src/actions.js";
import { actorName, treeMove, treeRows } from "../../../tools/inspector/src/actor_tree.js";
import { tokenIn } from "../../../tools/inspector/src/api.js";
import { parseRoute, routeHash } from "../../../tools/inspector/src/app_state.js";
import { refusalText } from "../../../tools/inspector/src/feed.js";
import { edgePx, flowGraph, labelHeightPx, labelWidthPx } from "../../../tools/inspector/src/flow_graph.js";
import { formatBytes, formatNumber, formatSeconds } from "../../../tools/inspector/src/format.js";
import { History } from "../../../tools/inspector/src/history.js";
import { coresText, healthOf, processHealth, Staleness } from "../../../tools/inspector/src/job_health.js";
import { addEvents, eventRow, filterEvents } from "../../../tools/inspector/src/job_events.js";
import { pathOf, roundLogTicks, roundTicks, scaleOf, smooth, thinOut, toLog } from "../../../tools/inspector/src/series.js";
import { addSteps, bubbleOf, stepsUntil, throughput } from "../../../tools/inspector/src/steps.js";
import { actionBars, barsOf, ticks } from "../../../tools/inspector/src/timeline_layout.js";
import { rowWindow, scrollToShow } from "../../../tools/inspector/src/virtual_rows.js";
import type { Step } from "../../../tools/inspector/src/api.js";
import { link, shownFrame } from "./shown_frame.js";

test("an actor is named with its lane, without what is 0", () => {
  const stage = shownFrame().actors.find((one) => one.role === "stage")!;
  const named = (replica: number | null, slice: number | null) => actorName({ ...stage, number: 2, replica, slice });
  assert.equal(named(0, 0), "stage 2");
  assert.equal(named(null, null), "stage 2");
  assert.equal(named(1, 0), "stage 2 of replica 1");
  assert.equal(named(0, 3), "stage 2 of slice 3");
  assert.equal(named(1, 3), "stage 2 of replica 1 slice 3");
});

test("actions of plans are read, also fused ones, and nonsense is none", () => {
  assert.deepEqual(parseActions("12F3"), [{ stage: 12, kind: "F", microbatch: 3 }]);
  assert.deepEqual(parseActions("(0F7;7B3)OVERLAP_F_B").map((one) => one.kind), ["F", "B"]);
  assert.deepEqual(parseActions("3A"), [{ stage: 3, kind: "A", microbatch: null }]);
  for (const text of ["", "F3", "3", "(1F2;x)", "<b>"]) assert.deepEqual(parseActions(text), []);
  assert.equal(describeAction("2W1"), "weight gradient of microbatch 1 in stage 2");
  assert.deepEqual([kindOf("0F0"), kindOf("0I0"), kindOf("0W0"), kindOf("?")], ["forward", "backward", "weights", "other"]);
});

test("inputs follow the chain of stages", () => {
  const input = (text: string) => inputsOf(parseActions(text)[0]!, 4).map((one) => `${one.stage}${one.kind}${one.microbatch}`);
  assert.deepEqual(input("0F1"), []);
  assert.deepEqual(input("2F1"), ["1F1"]);
  assert.deepEqual(input("2B1"), ["3B1"]);
  assert.deepEqual(input("3I1"), ["3F1"]);
  assert.deepEqual(input("3W1"), ["3I1"]);
  assert.deepEqual(input("3A"), []);
});

test("the token is found in the link, and nothing else is taken for one", () => {
  assert.equal(tokenIn("#token=abc-._~9"), "abc-._~9");
  assert.equal(tokenIn("#a=1&token=xyz"), "xyz");
  for (const text of ["", "#", "#token=", "#/overview", "#tokens=a", "token=a"]) assert.equal(tokenIn(text), null);
});

test("a job is only green while it goes on and nothing is wrong, and says so", () => {
  const frame = shownFrame();
  frame.job.newest_step_ms = frame.job.updated_ms - 100;
  frame.findings = [];
  assert.deepEqual(healthOf(frame), { kind: "good", word: "running", text: "Nothing is wrong, as far as can be seen." });
  frame.findings = null;
  assert.equal(healthOf(frame).text, "");
  frame.findings = [{ kind: "stuck_rank", actor: null, rank: 1, device: 1, text: "", since_ms: 0, seen_ms: 0 }];
  assert.deepEqual([healthOf(frame).kind, healthOf(frame).word], ["between", "running, 1 finding"]);
  assert.deepEqual(frame.processes.map((one) => processHealth(one, frame.findings!).kind), ["good", "between", "good", "good"]);
  assert.equal(processHealth(frame.processes[1]!, frame.findings).word, "active, stuck rank");
  frame.findings = [];
  frame.job.steps_per_s = 0;
  frame.job.newest_step_ms = frame.job.updated_ms - 20_000;
  assert.deepEqual([healthOf(frame).kind, healthOf(frame).word], ["between", "no step for 20 s"]);
  frame.job.is_paused = true;
  assert.equal(healthOf(frame).word, "paused");
  frame.job.is_paused = false;
  frame.job.call_kind = "evaluate";
  assert.equal(healthOf(frame).kind, "good");
  assert.equal(healthOf(frame, false).kind, "bad");
  assert.equal(healthOf(frame, true, 12).kind, "between");
});

test("what a job tells is stale when it stays the same, by the reader's clock", () => {
  const staleness = new Staleness();
  assert.equal(staleness.seconds(0, 5_000), 0);
  assert.equal(staleness.seconds(999, 6_000), 0);
  assert.equal(staleness.seconds(999, 18_000), 12);
  assert.equal(staleness.seconds(1_499, 19_000), 0);
});

test("too few cores are told of, and a few waits are not", () => {
  const { processes } = shownFrame();
  assert.equal(coresText(processes), "");
  processes[1] = { ...processes[1]!, cores_waited_for: 0.75 };
  processes[2] = { ...processes[2]!, cores_waited_for: 0.5 };
  assert.match(coresText(processes), /^1.3 threads wait for a core on average \(rank 1, rank 2\): there are too few cores/);
});

test("a smoothed curve follows the values, begins at the first one, and keeps gaps", () => {
  const points = [4, 2, NaN, 2, 2].map((y, x) => ({ x, y }));
  assert.deepEqual(smooth(points, 0), points);
  const found = smooth(points, 0.5).map((one) => one.y);
  assert.equal(found[0], 4);
  assert.ok(found[1]! > 2 && found[1]! < 3 && Number.isNaN(found[2]) && found[4]! < found[3]! && found[4]! > 2);
});

test("a logarithmic axis has no place for zero, and ticks are round", () => {
  assert.deepEqual(toLog([{ x: 1, y: 100 }, { x: 2, y: 0 }, { x: 3, y: -1 }]).map((one) => one.y), [2, NaN, NaN]);
  assert.deepEqual(roundTicks({ least: 0.02, greatest: 0.39 }, 4), [0.1, 0.2, 0.3]);
  assert.deepEqual(roundTicks({ least: 0, greatest: 1000 }, 4), [0, 500, 1000]);
  assert.deepEqual(roundTicks({ least: 1, greatest: 1 }, 4), []);
  const shown = (least: number, greatest: number) => roundLogTicks({ least: Math.log10(least), greatest: Math.log10(greatest) }, 5).map((one) => Number((10 ** one).toPrecision(6)));
  assert.deepEqual(shown(1.8, 5.5), [2, 3, 4, 5]);
  assert.deepEqual(shown(0.1, 3), [0.1, 0.2, 0.5, 1, 2]);
  assert.deepEqual(shown(0.001, 1000).map((one) => Number.isInteger(Math.log10(one))), [true, true, true, true]);
  for (const scale of [{ least: 0, greatest: 7 }, { least: 2.31, greatest: 2.34 }, { least: 1, greatest: 123_456 }]) {
    const ticks = roundTicks(scale, 4);
    assert.ok(ticks.length >= 1 && ticks.length <= 4 && ticks.every((one) => one >= scale.least && one <= scale.greatest), String(ticks));
  }
});

test("routes lead back to where they came from, and broken ones to the overview", () => {
  for (const of of ["", "1#0/stage/1", "ä b"]) assert.deepEqual(parseRoute(routeHash("actor", of)), { view: "actor", of });
  for (const text of ["", "#/nowhere", "#token=a", "#/__proto__"]) assert.equal(parseRoute(text).view, "overview");
  assert.deepEqual(parseRoute("#/actor/%ZZ"), { view: "actor", of: "" });
});

test("the tree has processes, their actors, and what was lost; filters open what they find", () => {
  const frame = shownFrame(2);
  frame.replaced = [{ ...frame.processes[1]!, state: "lost", pid: 1 }];
  frame.processes[1] = { ...frame.processes[1]!, incarnation: 1 };
  frame.actors.push({ ...frame.actors[6]!, id: "1#1/supervisor", incarnation: 1 });
  const rows = treeRows(frame, new Set(), "");
  assert.equal(rows.length, frame.actors.length);
  assert.deepEqual(rows.filter((row) => row.depth === 0).map((row) => row.label), ["rank 0", "rank 1, incarnation 1", "rank 1 (lost)"]);
  assert.equal(treeRows(frame, new Set(["0#0"]), "").length, rows.length - 5);
  const found = treeRows(frame, new Set(["0#0", "1#0"]), "stage RANK 0");
  assert.deepEqual(found.map((row) => row.id), ["0#0/supervisor", "0#0/stage/0"]);
  assert.equal(treeRows(frame, new Set(), "no such actor").length, 0);
});

test("keys move in the tree as trees do", () => {
  const rows = treeRows(shownFrame(2), new Set(["1#0"]), "");
  const move = (current: string | null, key: Parameters<typeof treeMove>[2]) => treeMove(rows, current, key, 4);
  assert.deepEqual(move(null, "ArrowDown"), { go: "0#0/supervisor" });
  assert.deepEqual(move("0#0/supervisor", "ArrowDown"), { go: "0#0/stage/0" });
  assert.deepEqual(move("0#0/stage/0", "ArrowLeft"), { go: "0#0/supervisor" });
  assert.deepEqual(move("0#0/supervisor", "ArrowLeft"), { toggle: "0#0/supervisor" });
  assert.deepEqual(move("1#0/supervisor", "ArrowRight"), { toggle: "1#0/supervisor" });
  assert.deepEqual(move("0#0/supervisor", "End"), { go: "1#0/supervisor" });
  assert.deepEqual(move("0#0/supervisor", "PageUp"), { go: "0#0/supervisor" });
  assert.deepEqual(treeMove([], null, "Home", 4), {});
});

test("of a long list only what is seen is drawn, and it fills the list", () => {
  for (const top of [0, 17, 3000, 29_700, 1e9]) {
    const shown = rowWindow(1000, 30, top, 300);
    assert.ok(shown.end - shown.first <= 10 + 17);
    assert.equal(shown.topPx + (shown.end - shown.first) * 30 + shown.bottomPx, 30_000);
    if (top <= 29_700) assert.ok(shown.topPx <= top && shown.end * 30 >= Math.min(30_000, top + 300));
  }
  assert.deepEqual(rowWindow(0, 30, 0, 300), { first: 0, end: 0, topPx: 0, bottomPx: 0 });
  assert.equal(scrollToShow(3, 30, 0, 300), 0);
  assert.equal(scrollToShow(20, 30, 0, 300), 330);
  assert.equal(scrollToShow(2, 30, 100, 300), 60);
});

test("the past is kept for as long and as large as allowed, and is found by its time", () => {
  const past = new History<number>(10_000, 50);
  for (let second = 0; second < 100; ++second) past.add(second * 1000, second, 1);
  assert.equal(past.oldestMs, 89_000);
  assert.equal(past.at(95_400), 95);
  assert.equal(past.at(0), 89);
  assert.equal(past.at(Infinity), 99);
  past.add(100_000, 100, 45);
  assert.equal(past.length, 6);
  past.add(100_000, 7, 1);
  assert.equal(past.newest, 100);
  assert.equal(new History<number>(1, 1).at(5), null);
});

test("a timeline's bars lie where its actions do, and short ones are joined", () => {
  const frame = shownFrame();
  const bars = actionBars(frame.simulated!, 1, 20, (text) => text);
  assert.equal(bars.length, 8);
  assert.deepEqual([bars[0]!.x, bars[0]!.width, bars[0]!.label, bars[0]!.kind], [20, 20, "0", "forward"]);
  const many = Array.from({ length: 10_000 }, (_, index) => ({ begin: index, end: index + 0.8, kind: "forward", label: "1", title: "t" }));
  assert.ok(barsOf(many, 0.05).length <= 500);
  assert.deepEqual(ticks(10, 500), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0, 500), [0]);
});

test("curves keep their spikes and leave gaps where nothing is known", () => {
  const points = Array.from({ length: 5000 }, (_, x) => ({ x, y: x === 1234 ? 99 : 1 }));
  const thin = thinOut(points, 100);
  assert.ok(thin.length <= 100 && thin.some((one) => one.y === 99));
  assert.equal(pathOf([{ x: 0, y: 0 }, { x: 1, y: NaN }, { x: 2, y: 1 }], 10, 10, { least: 0, greatest: 1 }), "M0.0 10.0M10.0 0.0");
  assert.equal(pathOf([], 10, 10, scaleOf([], true)), "");
  assert.deepEqual(scaleOf([5, 5], true), { least: 0, greatest: 5 });
});

test("the flow has an edge for each pair, counted or planned", () => {
  const frame = shownFrame();
  const counted = flowGraph(frame, 300);
  assert.equal(counted.edges.length, 3);
  const { path, head, widthPx, label, ...first } = counted.edges[0]!;
  assert.deepEqual(first, { from: 0, to: 1, bytes: 1000, bytesPerS: 2e6, inFlight: 2, isPlanned: false });
  assert.deepEqual([path[0], head[0], widthPx, label!.text], ["M", "M", edgePx(2e6), "1.9 MiB/s"]);
  frame.links.push(link(1, 9), link(2, 2));
  assert.equal(flowGraph(frame, 300).edges.length, 3);
  frame.links = [link(2, 2)];
  const planned = flowGraph(frame, 1000);
  assert.deepEqual([planned.processes.length, planned.edges.length], [4, 6]);
  assert.ok(planned.edges.every((edge) => edge.isPlanned));
  assert.ok(edgePx(1e9) > edgePx(1e3) && edgePx(null) === 1.5);
});

test("no label of the flow covers another one or a process, however many processes send to each other", () => {
  for (const numRanks of [2, 4, 8, 16])
    for (const widthPx of [350, 1240]) {
      const frame = shownFrame(numRanks);
      frame.links = frame.processes.flatMap(({ rank: from }) => frame.processes.flatMap(({ rank: to }) => (from === to ? [] : [{ ...link(from, to), bytes_per_s: 1.5e6 * (from + 1) }])));
      const graph = flowGraph(frame, widthPx);
      const boxes = graph.edges.flatMap(({ label }) => (label ? [{ x: label.x, y: label.y, width: labelWidthPx(label.text), height: labelHeightPx }] : []));
      if (numRanks <= 4) assert.equal(boxes.length, numRanks * (numRanks - 1));
      assert.ok(boxes.length >= numRanks);
      boxes.push(...graph.processes.map(({ x, y }) => ({ x, y, width: graph.nodeWidth, height: graph.nodeHeight })));
      boxes.forEach((one, index) => {
        assert.ok(one.y - one.height / 2 >= 0 && one.y + one.height / 2 <= graph.height);
        for (const other of boxes.slice(0, index))
          assert.ok(Math.abs(one.x - other.x) >= (one.width + other.width) / 2 || Math.abs(one.y - other.y) >= (one.height + other.height) / 2);
      });
    }
});

test("events become rows, broken ones none; filters take all words", () => {
  const rows = [
    eventRow("actor", "1", '{"rank":2,"role":"stage","number":2,"state":"running","starts":2,"reason":"<img src=x>","at_ms":5}', 9)!,
    eventRow("step", "2", '{"step":7,"loss":0.25}', 9)!,
    eventRow("recovery", "3", '{"rank":2,"seconds":0.07,"cause":"killed"}', 12)!,
  ];
  assert.equal(eventRow("step", "4", "nonsense", 9), null);
  assert.equal(eventRow("step", "4", "[1]", 9), null);
  assert.equal(rows[0]!.text, "stage 2 of rank 2: running, start 2: <img src=x>");
  assert.equal(rows[0]!.level, "warning");
  assert.deepEqual(filterEvents(rows, { hidden: new Set(["step"]), text: "RANK 2" }, Infinity).map((row) => row.kind), ["recovery", "actor"]);
  assert.deepEqual(filterEvents(rows, { hidden: new Set(), text: "" }, 10).map((row) => row.kind), ["step", "actor"]);
  assert.deepEqual(addEvents(rows.slice(1), [rows[0]!], 2).map((row) => row.kind), ["step", "recovery"]);
});

test("steps that were made again take the place of their first time", () => {
  const step = (number: number, at_ms: number, busy_s = 0.5) => ({ step: number, at_ms, span_s: 1, busy_s }) as Step;
  const steps = addSteps([step(1, 10), step(2, 20), step(3, 30)], [step(2, 40), step(3, 50)], 100);
  assert.deepEqual(steps.map((one) => one.at_ms), [10, 40, 50]);
  assert.equal(addSteps(steps, [step(4, 60)], 2).length, 2);
  assert.equal(stepsUntil(steps, 45).length, 2);
  assert.equal(bubbleOf(step(1, 1, 0.8))!.toFixed(2), "0.20");
});

test("numbers are written as people read them", () => {
  assert.deepEqual([formatSeconds(0.0023), formatSeconds(75), formatSeconds(0), formatSeconds(null)], ["2.3 ms", "1:15 min", "0 s", "–"]);
  assert.deepEqual([formatBytes(1536), formatBytes(5), formatBytes(undefined)], ["1.5 KiB", "5 B", "–"]);
  assert.deepEqual([formatNumber(1234567), formatNumber(0.123456), formatNumber(null)], ["1,234,567", "0.123", "–"]);
});

test("throughput is over several steps, so that two that come together are no spike", () => {
  const steps = [1, 1e-6, 1, 1].map((step_s) => ({ step_s, num_samples: 10 }) as Step);
  assert.deepEqual(throughput(steps, 2).map(Math.round), [10, 20, 20, 10]);
});

test("what becomes of a command is told in words, and so is why one was refused", () => {
  const row = eventRow("control", "1", '{"id":"0-1","action":"kill","target":"2#0/stage/2","rank":2,"outcome":"refused","text":"there is no such actor","at_ms":5}', 9)!;
  assert.equal(row.text, "command kill 2#0/stage/2: refused: there is no such actor");
  assert.deepEqual(row.command, { id: "0-1", action: "kill", outcome: "refused", text: "there is no such actor" });
  assert.equal(row.level, "warning");
  assert.equal(eventRow("control", "2", '{"action":"pause","outcome":"done"}', 9)!.text, "command pause: done");
  assert.equal(refusalText('{"error":"the job is stopping"}', 409), "the job is stopping");
  assert.equal(refusalText("too large", 413), "too large");
  assert.equal(refusalText("", 500), "status 500");
});
