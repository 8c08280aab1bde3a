// Reads the API: the session, all endpoints about once a second, and the stream of events.

import type { Actor, Device, Finding, Frame, Job, Link, LinkTotal, LogLine, Process, Plan, Snapshots, Step, Timeline } from "./api.js";
import { eventRow, logRow, type EventRow } from "./job_events.js";

export type Connection = "connecting" | "open" | "unreachable" | "refused";

export interface FeedListener {
  onFrame(frame: Frame, size: number): void;
  onSteps(steps: Step[]): void;
  onEvents(rows: EventRow[]): void;
  onConnection(connection: Connection, problem: string): void;
}

const intervalMs = 1000;
const soonMs = 60;
/// A process that is stopped takes connections and does not answer: the job must not look as it did before.
const answerWithinMs = 8000;
const eventKinds = ["step", "generation", "recovery", "call", "pause", "snapshot", "process", "process_state", "actor", "finding", "control", "dropped", "restarted"];

class Refused extends Error {}

/// Exchanges the token for a cookie, in which it stands in no address any more.
export async function openSession(token: string): Promise<void> {
  const answer = await fetch("/api/v1/session", { method: "POST", headers: { Authorization: `Bearer ${token}`, "X-Troupe-Request": "1" } });
  if (answer.status === 401) throw new Refused(await answer.text());
  if (!answer.ok) throw new Error(`the session was refused with status ${answer.status}: ${await answer.text()}`);
}

export class Feed {
  private readonly texts = new Map<string, { text: string; value: unknown }>();
  private readonly missing = new Set<string>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isPolling = false;
  private pollAgain = false;
  private stream: EventSource | null = null;
  private newestStep = 0;
  private newestLine = 0;
  private epoch = 0;
  private planOf = "";
  private pendingEvents: EventRow[] = [];

  constructor(private readonly listener: FeedListener) {}

  start(): void {
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.pollSoon(0);
    });
    this.pollSoon(0);
  }

  /// After something changed: no need to wait for the next second.
  pollSoon(delayMs = soonMs): void {
    if (this.isPolling) {
      this.pollAgain = true;
      return;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.poll(), delayMs);
  }

  private async poll(): Promise<void> {
    if (document.hidden) return; // nobody looks: the job is left alone until somebody does
    this.isPolling = true;
    this.pollAgain = false;
    let delayMs = intervalMs;
    try {
      await this.gather();
      this.listener.onConnection("open", "");
      this.openStream();
    } catch (problem) {
      const isRefused = problem instanceof Refused;
      if (isRefused) this.closeStream();
      this.listener.onConnection(isRefused ? "refused" : "unreachable", problem instanceof Error ? problem.message : String(problem));
      delayMs = 2 * intervalMs;
      if (isRefused) return;
    } finally {
      this.isPolling = false;
    }
    this.pollSoon(this.pollAgain ? soonMs : delayMs);
  }

  /// The parsed answer; the same object as before if its text is the same.
  private async read<T>(name: string): Promise<{ value: T; isNew: boolean }> {
    const answer = await fetch(`/api/v1/${name}`, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(answerWithinMs) });
    const text = await answer.text();
    if (answer.status === 401 || answer.status === 403) throw new Refused(text);
    if (!answer.ok) throw new Error(`/api/v1/${name} answered ${answer.status}: ${text}`);
    const key = name.split("?")[0]!;
    const before = this.texts.get(key);
    if (before && before.text === text) return { value: before.value as T, isNew: false };
    const value: unknown = JSON.parse(text);
    this.texts.set(key, { text, value });
    return { value: value as T, isNew: true };
  }

  /// For what older servers do not have.
  private async readIfThere<T>(name: string): Promise<T | null> {
    if (this.missing.has(name)) return null;
    const answer = await fetch(`/api/v1/${name}`, { signal: AbortSignal.timeout(answerWithinMs) });
    if (answer.status === 404) {
      this.missing.add(name);
      return null;
    }
    return answer.ok ? ((await answer.json()) as T) : null;
  }

  private async gather(): Promise<void> {
    const job = (await this.read<Job>("job")).value;
    const [processes, devices, actors, links, timeline, snapshots, findings] = await Promise.all([
      this.read<{ processes: Process[]; replaced: Process[] }>("processes"),
      this.read<{ devices: Device[] }>("devices"),
      this.read<{ actors: Actor[] }>("actors"),
      this.read<{ links: Link[]; totals: LinkTotal[] }>("links"),
      this.read<{ step: number | null; measured: Timeline | null }>("timeline"),
      this.read<Snapshots>("snapshots"),
      this.readIfThere<{ findings: Finding[] }>("findings"),
    ]);
    const plan = await this.plan(job, timeline.isNew);
    await this.readSteps();
    await this.readLog();
    let size = 10 + devices.value.devices.length + processes.value.processes.length;
    if (actors.isNew) size += actors.value.actors.length;
    if (timeline.isNew) for (const device of timeline.value.measured?.devices ?? []) size += device.length;
    this.listener.onFrame(
      {
        at_ms: Date.now(),
        job,
        processes: processes.value.processes,
        replaced: processes.value.replaced,
        devices: devices.value.devices,
        actors: actors.value.actors,
        links: links.value.links,
        linkTotals: links.value.totals,
        plan: plan.plan,
        simulated: plan.simulated,
        measured: { step: timeline.value.step, timeline: timeline.value.measured },
        snapshots: snapshots.value,
        findings: findings?.findings ?? null,
      },
      size,
    );
  }

  /// A plan changes with generations and calls only.
  private async plan(job: Job, isOther: boolean): Promise<{ plan: Plan | null; simulated: Timeline | null }> {
    const of = `${job.generation} ${job.call} ${job.state}`;
    const before = this.texts.get("plan")?.value as { plan: Plan | null; simulated: Timeline | null } | undefined;
    if (before?.plan && before.plan.devices.every((one) => one.rank !== null) && of === this.planOf && !isOther) return before;
    const read = await this.read<{ plan: Plan | null; simulated: Timeline | null }>("plan");
    this.planOf = of;
    return read.value;
  }

  private async readSteps(): Promise<void> {
    for (;;) {
      const { value } = await this.read<{ steps: Step[] }>(`metrics?after=${this.newestStep}&limit=1000`);
      if (value.steps.length === 0) return;
      this.listener.onSteps(value.steps);
      this.newestStep = value.steps[value.steps.length - 1]!.step;
      if (value.steps.length < 1000) return;
    }
  }

  private async readLog(): Promise<void> {
    const { value } = await this.read<{ lines: LogLine[] }>(`log?after=${this.newestLine}`);
    if (value.lines.length === 0) return;
    this.newestLine = value.lines[value.lines.length - 1]!.number;
    this.listener.onEvents(value.lines.map(logRow));
  }

  private openStream(): void {
    if (this.stream && this.stream.readyState !== EventSource.CLOSED) return;
    const stream = new EventSource("/api/v1/events");
    this.stream = stream;
    for (const kind of eventKinds) stream.addEventListener(kind, (event) => this.onEvent(kind, event as MessageEvent<string>));
  }

  private closeStream(): void {
    this.stream?.close();
    this.stream = null;
  }

  private onEvent(kind: string, event: MessageEvent<string>): void {
    if (kind === "restarted") {
      ++this.epoch;
      this.newestLine = 0;
    }
    // A recovery goes back to an earlier step, and steps are made again.
    if (kind === "generation") this.newestStep = Math.max(0, this.newestStep - 100);
    const row = eventRow(kind, `${this.epoch}.${event.lastEventId}`, event.data, Date.now());
    if (!row) return;
    this.pendingEvents.push(row);
    if (this.pendingEvents.length === 1) setTimeout(() => this.deliver(), soonMs);
    if (kind !== "step") this.pollSoon();
  }

  private deliver(): void {
    const rows = this.pendingEvents;
    this.pendingEvents = [];
    this.listener.onEvents(rows);
  }
}

/// Why the job refused a command: {"error":..}, or a line of text.
export function refusalText(body: string, status: number): string {
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === "object" && parsed !== null && "error" in parsed && typeof parsed.error === "string") return parsed.error;
  } catch {
    // It is a line of text.
  }
  return body || `status ${status}`;
}

/// Gives the job a command. Returns the command's id, by which the event `control` names it. Throws why the job refuses it.
export async function sendControl(action: string, body: Record<string, unknown>): Promise<string> {
  const answer = await fetch(`/api/v1/control/${action}`, {
    method: "POST",
    headers: { "X-Troupe-Request": "1", "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = (await answer.text()).trim();
  if (!answer.ok) throw new Error(refusalText(text, answer.status));
  return (JSON.parse(text) as { id: string }).id;
}
