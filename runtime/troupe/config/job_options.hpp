#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "troupe/config/replica_exchange_options.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/tensor/dtype.hpp"

namespace troupe {

namespace config {
class program_frame;
}  // namespace config

/// All options of a training job: set in C++, by one YAML file, or on the command line (rising precedence).
/// The YAML keys and the command line's options are the fields' names with '-' for '_' on the command
/// line; the table of them is job_fields.hpp. A new field needs a row there. Those of
/// replica_exchange_options need `replicas` of more than 1, and the result's bits depend on them.
struct job_options : replica_exchange_options {
  /// Folder of the dataset.
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  /// Passes over the training data.
  int epochs = 5;
  /// Stop after so many optimizer steps in all; 0: epochs decide.
  std::uint64_t steps = 0;
  /// Global batch in samples.
  int batch = 256;
  /// Per step; must divide `batch`.
  int microbatches = 8;
  /// Pipeline stages; 0: one per device, two in schedules that place them.
  int stages = 0;
  schedule_kind schedule = schedule_kind::one_f_one_b;
  /// pipedream_2bw: optimizer steps between two flushes. More: less idle time, gradients one step late in all
  /// but the first; the result's bits depend on it. It must divide the number of steps. 1: as 1f1b.
  int flush_every = 1;
  /// Copies of the pipeline that train together, each with `microbatches` of its own (data parallelism); the
  /// devices are divided among them.
  int replicas = 1;
  /// What the replicas divide among themselves: none, optimizer, grad or full (Pipeline::shard).
  std::string shard = "none";
  /// With shard full: pass or step (Pipeline::reshard_after), and Pipeline::gather_ahead.
  std::string reshard_after = "pass";
  int gather_ahead = 1;
  /// A plan in the CSV form of torch.distributed.pipelining (plan_csv.hpp), which is run instead of
  /// `schedule`; empty: none.
  std::filesystem::path plan;
  /// Which device computes which layers (DeviceMap::read), instead of `stages`; empty: none.
  std::filesystem::path device_map;
  /// Devices in each process, as far as there are stages for them: a job has no more devices than stages.
  int devices = 1;
  /// Where the job's devices compute: cpu, cuda, cuda:N, cuda:N..M, or several of these with commas between,
  /// which the devices take in turn (mesh/device_places.hpp). With cuda each device has a GPU of its own: a
  /// process those from LOCAL_RANK * `devices` on. Each process needs the GPUs that are named. The result's
  /// bits depend on it.
  std::string device = "cpu";
  /// The most that each device may hold in the memory of its place, such as "4GiB", copies of the state apart
  /// (memory_report). A step that needs more ends the job. Empty: what the machine has.
  std::string memory_limit;
  /// Compute threads per device; the result's bits depend on it.
  int threads = 1;
  std::uint64_t seed = 1;
  double learning_rate = 1e-3;
  /// The dtype of matrix products: f32, bf16 or f16. bf16 and f16 are less precise, and faster where the
  /// machine has instructions for them.
  dtype precision = dtype::f32;
  /// Maximum norm of all gradients, larger ones are scaled down to it; 0: no clipping.
  double clip_grad_norm = 0;
  /// Initial loss scale in f16. A power of two scales without rounding.
  double loss_scale = 65536;
  /// What happens when a loss or gradient is infinite or NaN: `stop` ends the job with the last finite state,
  /// `skip` skips the step on all stages (which exchange their gradients' norms to agree). Neither writes a
  /// snapshot of a state that is not finite. `go_on` does not check.
  std::string on_non_finite = "stop";
  /// Empty: snapshots in memory only.
  std::filesystem::path snapshot_dir;
  /// Steps between state copies in memory; 0: as many as keep copying below 2 % of the time. Fewer steps:
  /// less to compute again after a failure.
  std::uint64_t snapshot_every = 0;
  /// Least time between snapshots on disk.
  std::chrono::milliseconds snapshot_interval = std::chrono::seconds(5);
  /// Steps between snapshots on disk; 0: snapshot_interval decides.
  std::uint64_t disk_every = 0;
  /// Start from the newest valid snapshot in snapshot_dir, or from the initial weights if the folder is
  /// empty. A folder whose snapshots are all unusable is an error.
  bool resume = false;
  /// With `resume`: take weights and step from the snapshot, and begin with a new state of the optimizer
  /// (moments, numbers of steps), which may then be another one than the snapshot's.
  bool reset_optimizer = false;
  /// Start from the initial weights although snapshot_dir holds snapshots, which are kept under other names.
  bool fresh_start = false;
  /// Who may read snapshots: owner (files 0600 in folders 0700), group (0640, 0750), or umask (as the
  /// process's other files).
  std::string snapshot_access = "owner";
  /// What happens when processes that keep each other's copies are lost at once and no snapshot is on disk:
  /// stop (the job ends with an error), or restart (training begins again at step 0).
  std::string on_lost_state = "stop";
  /// Write a Perfetto trace per process there; empty: none.
  std::filesystem::path trace_dir;
  /// Rank 0 shows the job over HTTP at this address (http/listen_address.hpp, docs/inspect.md):
  /// "127.0.0.1:0", "8080". Port 0 is any free one, which the start prints. Empty: no port and no thread. An
  /// address that other machines reach needs inspect_token_file.
  std::string inspect;
  /// A file whose text is the token that users of the inspector send; empty: one is drawn for each job.
  std::filesystem::path inspect_token_file;
  /// Those with the token may also give commands: pause the job, take snapshots, restart and kill its actors
  /// and processes. Needs `inspect`.
  bool inspect_control = false;
  /// The commands are appended to this file, one JSON object per line. Empty: inspector_audit.jsonl in
  /// snapshot_dir; without that the log.
  std::filesystem::path inspect_audit_log;
  /// Backend of process groups: ucx, local (one process only), gloo, mpi or nccl.
  std::string backend = "ucx";
  std::string network_interface = "lo";
  /// Which algorithm calls of ucx groups take between hosts, for networks unlike the one that was measured:
  /// "whole_inputs=64K,block=1M", see collective/calls/network_sizes.hpp. The same in all processes;
  /// no bit depends on it. Empty: as measured.
  std::string network_sizes;
  /// Authenticate tensor bytes too.
  bool verify_frames = false;
  /// trace, debug, info, warn, error, off
  std::string log_level = "warn";
  /// Workers that have not joined by then end the job.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(60);
  /// A process that sends no heartbeat for this long counts as lost. Rank 0's value counts; under
  /// `troupe launch` the launcher's.
  std::chrono::milliseconds suspect_after = std::chrono::seconds(1);
  /// A device that spends this long in one action of the plan, or a loader in one batch, counts as lost. Its
  /// process is killed, and restarted by `troupe launch`; without a launcher the job ends. Set it longer than
  /// any action or batch takes, the first one included. 0: no check.
  std::chrono::milliseconds progress_timeout = std::chrono::minutes(10);
  /// Fault injection for tests of recovery, see fault/fault_plan.hpp; empty: none.
  std::string fault;
  /// Time for a program that got SIGTERM, SIGINT or SIGHUP to save its state and end. Under
  /// `troupe launch` the launcher's own --grace counts too.
  std::chrono::milliseconds grace = std::chrono::seconds(20);
  /// Further signals that stop a program as SIGTERM does, see config/stop_signals.hpp: "USR1,USR2,XCPU".
  /// Those of `troupe launch --stop-signals` count too.
  std::string stop_signals;
  /// One JSON object per line on standard output, nothing else.
  bool json = false;
  /// Not an option; set by run_program: handles signals and reports errors for the World. Null: the program
  /// handles signals itself and may call World::request_stop.
  std::shared_ptr<config::program_frame> frame;

  /// Not an option: the names of the fields that the command line or a YAML file set. A Trainer throws if one
  /// of them concerns the pipeline and its Pipeline ignores it. A program that uses such a field itself
  /// erases its name here.
  std::set<std::string> given = {};
};

/// Sets the fields named in the YAML file. Throws bad_input with file, line, the unknown key or bad value,
/// and what is known.
void apply_yaml(const std::filesystem::path& file, job_options& options);

/// Throws bad_input for values that cannot work together, each with what to change (batch not divisible,
/// ...).
void check_options(const job_options& options);

/// Throws bad_input naming the nearest numbers unless `flush_every` divides the number of optimizer steps.
void check_whole_flushes(std::uint64_t steps, int flush_every);
/// The same for `average_every`, which is 0 if there are no averages.
void check_whole_averages(std::uint64_t steps, int average_every);

}  // namespace troupe
