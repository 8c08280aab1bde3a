#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "troupe/config/job_fields.hpp"
#include "troupe/config/stop_signals.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/fault/fault_plan.hpp"
#include "troupe/mesh/device_places.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

/// Far above anything sensible: a typing mistake ends in a message instead of in a million threads.
constexpr int most_devices = 1024;
constexpr int most_stages = 65536;
constexpr int most_replicas = 32767;

void check_range(const char* option, long long value, long long least, long long most) {
  if (value < least || value > most)
    throw bad_input(std::string(option) + " must lie between " + std::to_string(least) + " and " +
                    std::to_string(most) + ", got " + std::to_string(value));
}

void check_word(const char* option, const std::string& word, std::initializer_list<const char*> known) {
  if (std::ranges::find(known, word) != known.end()) return;
  std::string list;
  for (const char* candidate : known) list += (list.empty() ? "" : ", ") + std::string(candidate);
  throw bad_input(std::string(option) + " must be one of " + list + ", got '" + word + "'");
}

/// The numbers next to `number` that `divisor` divides: "248 or 256".
std::string multiples_around(int number, int divisor) {
  auto below = number / divisor * divisor;
  auto above = std::to_string(static_cast<long long>(below) + divisor);
  return below == 0 ? above : std::to_string(below) + " or " + above;
}

void check_batch(const job_options& options) {
  check_range("--batch", options.batch, 1, 1 << 30);
  check_range("--microbatches", options.microbatches, 1, 1 << 20);
  if (options.replicas > 1 && options.batch % options.microbatches == 0 &&
      options.batch % (std::int64_t{options.microbatches} * options.replicas) != 0)
    throw bad_input("a batch of " + std::to_string(options.batch) + " samples cannot be cut into " +
                    std::to_string(options.microbatches) + " equal microbatches for each of " +
                    std::to_string(options.replicas) +
                    " replicas: change --batch, --microbatches or --replicas");
  if (options.batch % options.microbatches == 0) return;
  auto fewer = std::min(options.microbatches, options.batch);
  while (options.batch % fewer != 0) --fewer;
  throw bad_input("a batch of " + std::to_string(options.batch) + " samples cannot be cut into " +
                  std::to_string(options.microbatches) + " equal microbatches: use --batch " +
                  multiples_around(options.batch, options.microbatches) + ", or --microbatches " +
                  std::to_string(fewer));
}

void check_device(const job_options& options) try {
  mesh::device_places::from_string(options.device);
} catch (const bad_input& problem) {
  throw bad_input(std::string("--device: ") + problem.what());
}

void check_memory_limit(const job_options& options) try {
  if (options.given.contains("memory_limit") || !options.memory_limit.empty())
    usage::bytes_from(options.memory_limit);
} catch (const bad_input& problem) {
  throw bad_input(std::string("--memory-limit: ") + problem.what());
}

void check_layout(const job_options& options) {
  check_range("--stages", options.stages, 0, most_stages);
  check_range("--replicas", options.replicas, 1, most_replicas);
  check_range("--devices", options.devices, 1, most_devices);
  check_range("--threads", options.threads, 1, most_devices);
  auto num_cells = std::int64_t{options.stages} * options.replicas;
  if (options.replicas > 1 && options.stages != 0 && num_cells < options.devices)
    throw bad_input(std::to_string(options.devices) + " devices cannot share " +
                    std::to_string(options.replicas) + " replicas of " + std::to_string(options.stages) +
                    " stages: use --devices " + std::to_string(num_cells) +
                    " or fewer, or more --stages or --replicas");
  if (options.stages != 0 && num_cells < options.devices)
    throw bad_input(std::to_string(options.devices) + " devices cannot share " +
                    std::to_string(options.stages) + " stages: use --devices " +
                    std::to_string(options.stages) + " or fewer, or --stages " +
                    std::to_string(options.devices) + " or more");
  if (options.schedule == schedule_kind::forward_only)
    throw bad_input("--schedule forward_only computes no gradients: train with 1f1b or another one");
  if (options.plan.empty() && options.given.contains("plan"))
    throw bad_input("--plan names no file. Name a CSV file, or leave the option out");
  if (!options.plan.empty() && options.given.contains("schedule"))
    throw bad_input("--plan " + options.plan.string() +
                    " says in which order devices compute, and so does --schedule: give one of them");
  if (options.device_map.empty() && options.given.contains("device_map"))
    throw bad_input("--device-map names no file. Name a YAML file, or leave the option out");
  if (options.device_map.empty()) return;
  for (const auto* other : {"plan", "stages"})
    if (options.given.contains(other))
      throw bad_input("--device-map " + options.device_map.string() +
                      " says what the stages are and on which devices, and so does --" + other +
                      ": give one of them");
}

void check_gathers(const job_options& options) {
  for (const auto* name : {"reshard_after", "gather_ahead"})
    if (options.shard != "full" && options.given.contains(name))
      throw bad_input(config::find_job_field(name)->option_name() +
                      " says when stages hold whole weights, which they always do but with --shard full: add "
                      "that, or leave it out");
  if (options.gather_ahead < 0 || options.gather_ahead > schedule::most_gather_ahead)
    throw bad_input("--gather-ahead must be from 0 to " + std::to_string(schedule::most_gather_ahead) +
                    " passes, got " + std::to_string(options.gather_ahead));
}

void check_exchange(const job_options& options) {
  check_word("--shard", options.shard, {"none", "optimizer", "grad", "full"});
  check_word("--reshard-after", options.reshard_after, {"pass", "step"});
  check_gathers(options);
  if (options.replicas > 1) return;
  if (options.shard != "none")
    throw bad_input("--shard " + options.shard +
                    " divides what the replicas of a pipeline hold: add --replicas 2 or more, or leave it "
                    "out");
  for (const auto& given : given_in(options))
    throw bad_input(
        given.option_name + " " + given.value +
        " is about what the replicas of a pipeline exchange: add --replicas 2 or more, or leave it out");
}

/// "1e-05": the shortest text of the number.
std::string text_of(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

/// `expected` is as in "a number above 0, for example 0.001".
void check_number(const char* option, double value, bool fits, const std::string& expected) {
  if (!std::isfinite(value) || !fits)
    throw bad_input(std::string(option) + " must be " + expected + ", got " + text_of(value));
}

void check_learning(const job_options& options) {
  check_number("--learning-rate", options.learning_rate, options.learning_rate > 0,
               "a number above 0, for example 0.001");
  check_number("--clip-grad-norm", options.clip_grad_norm, options.clip_grad_norm >= 0,
               "a number above 0, for example 1, or 0 for no clipping");
  using f32 = std::numeric_limits<float>;
  check_number("--loss-scale", options.loss_scale,
               options.loss_scale >= f32::min() && options.loss_scale <= f32::max(),
               "a number from 1.2e-38 to 3.4e38, for example 65536");
  if (options.given.contains("loss_scale") && options.precision != dtype::f16)
    throw bad_input("--loss-scale " + text_of(options.loss_scale) + " is about f16, and --precision is " +
                    std::string(to_string(options.precision)) +
                    ": add --precision f16, or leave --loss-scale out");
}

void check_whole_periods(std::uint64_t steps, int period, const char* end, const char* option) {
  auto every = static_cast<std::uint64_t>(period);
  if (steps % every == 0) return;
  auto below = steps / every * every;
  throw bad_input(std::string("training ends at ") + end + ", and " + std::to_string(steps) +
                  " steps are no multiple of " + option + " " + std::to_string(period) + ": use --steps " +
                  (below == 0 ? "" : std::to_string(below) + " or ") + std::to_string(below + every) +
                  ", as far as --epochs reach");
}

void check_flush(const job_options& options) {
  check_range("--flush-every", options.flush_every, 1, 1 << 20);
  bool may_have_several = options.schedule == schedule_kind::pipedream_2bw || !options.plan.empty();
  if (options.flush_every > 1 && !may_have_several)
    throw bad_input("--schedule " + std::string(to_string(options.schedule)) +
                    " flushes after every step, not after " + std::to_string(options.flush_every) +
                    ": leave --flush-every out, or use --schedule pipedream_2bw");
  check_whole_flushes(options.steps, options.flush_every);
}

void check_snapshots(const job_options& options) {
  if (options.snapshot_interval.count() < 0) throw bad_input("--snapshot-interval must not be negative");
  if (options.reset_optimizer && !options.resume)
    throw bad_input("--reset-optimizer is about a job that continues from a snapshot: add --resume");
  if (options.resume && options.fresh_start)
    throw bad_input(
        "--resume continues from a snapshot and --fresh-start ignores snapshots: choose one of them");
  if (!options.snapshot_dir.empty()) return;
  if (options.fresh_start)
    throw bad_input("--fresh-start is about the snapshots in a folder: add --snapshot-dir FOLDER");
  if (options.resume)
    throw bad_input("--resume needs to know where the snapshots are: add --snapshot-dir FOLDER");
  if (options.disk_every != 0)
    throw bad_input("--disk-every needs a folder to write to: add --snapshot-dir FOLDER");
  for (const auto* name : {"snapshot_access", "snapshot_interval"})
    if (options.given.contains(name))
      throw bad_input(config::find_job_field(name)->option_name() +
                      " is about the snapshots in a folder: add --snapshot-dir FOLDER");
}

void check_faults(const job_options& options) {
  for (const auto& fault : fault::faults_from(options.fault)) {
    bool is_on_disk = fault.point == fault::fault_point::part_half_written ||
                      fault.point == fault::fault_point::before_manifest ||
                      fault.point == fault::fault_point::read_part;
    if (is_on_disk && options.snapshot_dir.empty())
      throw bad_input("--fault " + std::string(to_string(fault.point)) +
                      " strikes where snapshots on disk are written or read, and this job has none: add "
                      "--snapshot-dir FOLDER");
  }
}

void check_inspect(const job_options& options) {
  if (options.inspect.empty() && options.given.contains("inspect_token_file"))
    throw bad_input("--inspect-token-file is about the inspector: add --inspect ADDRESS:PORT");
  if (options.inspect.empty() && options.inspect_control)
    throw bad_input("--inspect-control lets those who watch the job give it commands: add --inspect");
  if (!options.inspect_control && !options.inspect_audit_log.empty())
    throw bad_input(
        "--inspect-audit-log keeps the commands that the inspector is given: add --inspect-control");
}

}  // namespace

void check_options(const job_options& options) {
  check_range("--epochs", options.epochs, 1, 1 << 30);
  check_batch(options);
  check_layout(options);
  check_device(options);
  check_memory_limit(options);
  check_flush(options);
  check_snapshots(options);
  check_learning(options);
  check_exchange(options);
  check_number("--top-k-gradients", options.top_k_gradients,
               options.top_k_gradients >= 0 && options.top_k_gradients <= 1,
               "a number from 0 to 1, for example 0.01, or 0 for all elements");
  check_range("--power-sgd-rank", options.power_sgd_rank, 0, 1 << 20);
  check_range("--average-every", options.average_every, 0, 1 << 30);
  check_whole_averages(options.steps, options.average_every);
  if (options.data.empty()) throw bad_input("--data must name the folder of the dataset");
  if (options.network_interface.empty())
    throw bad_input("--network-interface must name a network interface, for example lo (see `ip link`)");
  if (options.join_timeout.count() <= 0) throw bad_input("--join-timeout must be above 0, for example 60s");
  if (options.suspect_after.count() <= 0) throw bad_input("--suspect-after must be above 0, for example 1s");
  check_word("--on-non-finite", options.on_non_finite, {"stop", "skip", "go_on"});
  if (options.grace.count() <= 0) throw bad_input("--grace must be above 0, for example 20s");
  config::stop_signals_from(options.stop_signals);
  check_inspect(options);
  if (options.progress_timeout.count() < 0)
    throw bad_input("--progress-timeout must be above 0, for example 10m, or 0 for never");
  check_word("--backend", options.backend, {"ucx", "local", "gloo", "mpi", "nccl"});
  check_word("--snapshot-access", options.snapshot_access, {"owner", "group", "umask"});
  check_word("--on-lost-state", options.on_lost_state, {"stop", "restart"});
  check_word("--log-level", options.log_level, {"trace", "debug", "info", "warn", "error", "off"});
  check_faults(options);
}

void check_whole_flushes(std::uint64_t steps, int flush_every) {
  check_whole_periods(steps, flush_every, "a flush", "--flush-every");
}

void check_whole_averages(std::uint64_t steps, int average_every) {
  if (average_every > 0) check_whole_periods(steps, average_every, "an average", "--average-every");
}

}  // namespace troupe
