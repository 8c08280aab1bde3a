// What the inspector's API answers (docs/inspect.md; /api/v1/schema). Fields that older servers lack are
// optional, and what is not known is null.

export interface Recovery {
  at_ms: number;
  generation: number;
  rank: number;
  cause: string;
  total_s: number;
  detect_s?: number;
  fence_s?: number;
  quiesce_s?: number;
  respawn_s?: number;
  restore_s?: number;
  rebuild_s?: number;
  replay_s?: number;
}

export interface Job {
  job_id: string;
  world_size: number;
  rank: number;
  generation: number;
  started_ms: number;
  updated_ms: number;
  state: string | null;
  call: number | null;
  call_kind: string | null;
  step: number | null;
  end_step: number | null;
  is_stopping: boolean;
  is_paused: boolean;
  /// Paused, and all devices have come to where they stop.
  stands?: boolean;
  loss: number | null;
  steps_per_s: number | null;
  samples_per_s: number | null;
  /// Older servers do not have these three.
  newest_step_ms?: number | null;
  seconds_left?: number | null;
  learning_rate?: number | null;
  num_recoveries: number;
  recoveries: Recovery[];
  control?: boolean;
  /// Null or not there: not known.
  log_level?: string | null;
}

export interface Process {
  rank: number;
  incarnation: number;
  pid: number;
  host: string;
  state: string;
  generation: number;
  reported_ms: number;
  unanswered_polls: number;
  /// Threads that could run while others had the cores, on average.
  cores_waited_for: number;
  memory?: Memory | null;
}

export interface Memory {
  /// As the kernel counts it; the others are those of tensors in CPU memory.
  resident_bytes?: number | null;
  peak_resident_bytes?: number | null;
  current_bytes: number;
  peak_bytes: number;
  parameters_bytes: number;
  gradients_bytes: number;
  optimizer_bytes: number;
  activations_bytes: number;
  other_bytes: number;
}

export interface Device {
  device: number;
  rank: number;
  place: string | null;
  memory_bytes: number;
  peak_memory_bytes: number;
  memory_limit_bytes: number | null;
  host_memory_bytes: number;
  activity: string;
  call: number;
  call_kind: string;
  run: number;
  position: number;
  action: string | null;
  at_position_s: number;
}

export interface Actor {
  id: string;
  parent: string | null;
  role: string;
  number: number;
  /// Of a stage.
  replica: number | null;
  slice: number | null;
  rank: number;
  incarnation: number;
  state: string;
  restarts: number;
  reason: string | null;
  mailbox_depth: number | null;
  oldest_message_s?: number | null;
  messages_in?: number | null;
  messages_out?: number | null;
  bytes_in?: number | null;
  bytes_out?: number | null;
  handler_p50_s?: number | null;
  handler_p99_s?: number | null;
  handler_running_s?: number | null;
}

/// What one process sends to another. Null: the end that counts it has not reported it.
export interface Link {
  from: number;
  to: number;
  tensors_sent: number | null;
  tensors_received: number | null;
  tensors_in_flight: number | null;
  tensor_bytes_sent: number | null;
  tensor_bytes_received: number | null;
  tensor_bytes_in_flight: number | null;
  frames_sent: number | null;
  frames_received: number | null;
  frame_bytes_sent: number | null;
  frame_bytes_received: number | null;
  frame_bytes_queued: number | null;
  bytes_per_s: number | null;
  tensors_per_s: number | null;
  frames_per_s: number | null;
}

/// All links of a process together.
export interface LinkTotal {
  rank: number;
  tensor_bytes_sent: number;
  tensor_bytes_received: number;
  bytes_sent_per_s: number;
  bytes_received_per_s: number;
  stale_frames: number;
  bad_frames: number;
}

export interface TimedAction {
  action: string;
  begin: number;
  end: number;
}

export interface Timeline {
  unit: string;
  makespan: number;
  idle: number[];
  devices: TimedAction[][];
}

export interface PlanDevice {
  device: number;
  rank: number | null;
  stages: number[];
  actions: string[];
}

/// Actions of a kind that the lanes along an axis of the mesh run together.
export interface JointKind {
  stage: number;
  kind: string;
  axis: string;
}

export interface Plan {
  schedule: string;
  num_stages: number;
  num_microbatches: number;
  steps_per_run: number;
  num_slices: number;
  joint: JointKind[];
  devices: PlanDevice[];
}

export interface Step {
  step: number;
  at_ms: number;
  loss: number | null;
  num_samples: number;
  step_s: number;
  span_s: number;
  busy_s: number;
  copy_s: number;
}

export interface Snapshots {
  folder: string | null;
  committed_step: number | null;
  step_on_disk: number | null;
  pending: number;
  /// Steps of those that are in the folder now, newest first; null or not there: not known.
  on_disk?: number[] | null;
}

export interface LogLine {
  number: number;
  at_ms: number;
  level: string;
  text: string;
}

export interface Finding {
  kind: string;
  actor: string | null;
  rank: number | null;
  device: number | null;
  text: string;
  since_ms: number;
  seen_ms: number;
}

/// One look at the job: what all endpoints said at nearly one time.
export interface Frame {
  at_ms: number;
  job: Job;
  processes: Process[];
  replaced: Process[];
  devices: Device[];
  actors: Actor[];
  links: Link[];
  linkTotals: LinkTotal[];
  plan: Plan | null;
  simulated: Timeline | null;
  measured: { step: number | null; timeline: Timeline | null };
  snapshots: Snapshots;
  /// Null: this server finds nothing by itself.
  findings: Finding[] | null;
}

/// One word for what the job does.
export function jobState(job: Job): string {
  if (job.is_paused) return job.stands === false ? "pausing" : "paused";
  return job.is_stopping ? "stopping" : (job.state ?? "starting");
}

/// The token in the part of the address behind '#', which browsers do not send; null: there is none.
export function tokenIn(hash: string): string | null {
  const found = /^#(?:.*&)?token=([A-Za-z0-9\-._~]+)/.exec(hash);
  return found?.[1] ?? null;
}
