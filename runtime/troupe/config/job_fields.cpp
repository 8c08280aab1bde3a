#include "troupe/config/job_fields.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <vector>

#include "troupe/config/duration_text.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe::config {
namespace {

using o = job_options;

const job_field fields[] = {
    {"data", &o::data, "folder of the dataset"},
    {"epochs", &o::epochs, "passes over the training data"},
    {"steps", &o::steps, "stop after so many optimizer steps in all; 0: epochs decide"},
    {"batch", &o::batch, "global batch in samples"},
    {"microbatches", &o::microbatches, "microbatches per step; must divide the batch"},
    {"replicas", &o::replicas,
     "copies of the pipeline, each with so many microbatches; the bits depend on it"},
    {"shard", &o::shard,
     "what replicas divide among themselves: none, optimizer (the optimizer's state, ZeRO 1), grad "
     "(gradients too, ZeRO 2), or full (weights too, ZeRO 3); no bit depends on it"},
    {"reshard_after", &o::reshard_after,
     "with --shard full: a stage lets go of weights after each pass, where one of another stage follows "
     "(pass), or after its last backward of the step (step)"},
    {"gather_ahead", &o::gather_ahead,
     "with --shard full: so many passes of its device ahead a stage gathers its weights"},
    {"stages", &o::stages,
     "pipeline stages; 0: one per device, two in interleaved_1f1b, zb_v, dualpipe_v and looped_bfs"},
    {"schedule", &o::schedule,
     "order of the microbatches: gpipe, 1f1b, interleaved_1f1b, zb_h1, zb_h2, zb_v, dualpipe_v, "
     "pipedream_2bw, looped_bfs"},
    {"flush_every", &o::flush_every,
     "pipedream_2bw: steps between two flushes; must divide their number; the bits depend on it"},
    {"plan", &o::plan,
     "run the plan in this CSV file, as troupe schedule --csv writes one, instead of --schedule"},
    {"device_map", &o::device_map, "which device computes which layers: a YAML file, instead of --stages"},
    {"devices", &o::devices, "devices in each process, as far as there are stages"},
    {"device", &o::device,
     "where devices compute, in turn: cpu, cuda (a GPU each), cuda:N, cuda:N..M; the bits depend on it"},
    {"memory_limit", &o::memory_limit, "the most that each device may hold, such as 4GiB; none: no limit"},
    {"threads", &o::threads, "compute threads per device; no bit depends on it"},
    {"seed", &o::seed, "of weights and of the order of the samples"},
    {"learning_rate", &o::learning_rate, "step size of the optimizer"},
    {"precision", &o::precision, "in what products compute: f32, bf16, f16"},
    {"clip_grad_norm", &o::clip_grad_norm, "the most that the norm of all gradients may be; 0: not clipped"},
    {"loss_scale", &o::loss_scale, "how the loss scale begins, in f16"},
    {"gradient_sync", &o::gradient_sync,
     "in what replicas exchange gradients: f32, bf16, f16; the bits depend on it"},
    {"top_k_gradients", &o::top_k_gradients,
     "the fraction of a large weight's gradient that replicas exchange, its largest elements; 0: all"},
    {"power_sgd_rank", &o::power_sgd_rank,
     "the rank of the factors as which replicas exchange a large matrix's gradient (PowerSGD); 0: all"},
    {"average_every", &o::average_every,
     "steps between two averages of the replicas' weights, with no gradients exchanged (local SGD); 0: none"},
    {"on_non_finite", &o::on_non_finite,
     "a loss or gradient that is infinite or NaN: stop, skip the step, or go_on"},
    {"snapshot_dir", &o::snapshot_dir, "folder of the snapshots; none: in memory only"},
    {"snapshot_every", &o::snapshot_every,
     "steps between state copies in memory; 0: copying stays below 2 % of the time"},
    {"snapshot_interval", &o::snapshot_interval, "least time between snapshots on disk"},
    {"disk_every", &o::disk_every, "steps between snapshots on disk; 0: by time"},
    {"resume", &o::resume, "start from the newest valid snapshot in the snapshot folder"},
    {"reset_optimizer", &o::reset_optimizer,
     "resume with a new state of the optimizer, which may be another one than the snapshot's"},
    {"fresh_start", &o::fresh_start, "start anew although the folder holds snapshots, which are set aside"},
    {"snapshot_access", &o::snapshot_access, "who may read snapshots: owner, group, or umask"},
    {"on_lost_state", &o::on_lost_state,
     "two neighbours lost at once, nothing on disk: stop, or restart at step 0"},
    {"trace_dir", &o::trace_dir, "write a Perfetto trace per process there"},
    {"inspect", &o::inspect,
     "watch the job over HTTP at this address, ADDRESS:PORT; alone: a free local port", "127.0.0.1:0"},
    {"inspect_token_file", &o::inspect_token_file, "the inspector's token; needed where others can reach it"},
    {"inspect_control", &o::inspect_control,
     "let those with the inspector's token pause the job, and restart or kill parts of it"},
    {"inspect_audit_log", &o::inspect_audit_log,
     "append the commands to this file; none: inspector_audit.jsonl in the snapshot folder, or the log"},
    {"backend", &o::backend,
     "carries the calls of process groups: ucx, local, gloo, mpi or nccl; the last three also what replicas "
     "add up"},
    {"network_interface", &o::network_interface, "the network the job may use; lo: this host only"},
    {"network_sizes", &o::network_sizes,
     "sizes at which ucx groups change algorithms between hosts, such as whole_inputs=64K,block=1M"},
    {"verify_frames", &o::verify_frames, "authenticate tensor bytes too"},
    {"log_level", &o::log_level, "trace, debug, info, warn, error or off"},
    {"join_timeout", &o::join_timeout, "workers that have not joined by then end the job"},
    {"suspect_after", &o::suspect_after, "a process that sends no heartbeat for this long counts as lost"},
    {"progress_timeout", &o::progress_timeout,
     "a device or loader without progress for this long counts as lost; 0: never"},
    {"fault", &o::fault,
     "inject a fault into a worker: POINT[:kill|stop|fail|hang]@rank=R[,step=S][,incarnation=I]"},
    {"grace", &o::grace, "after SIGTERM, SIGINT or SIGHUP, time to save what is done and end"},
    {"stop_signals", &o::stop_signals, "further signals that stop the job as SIGTERM does: USR1, USR2, XCPU"},
    {"json", &o::json, "one JSON object per line on standard output, nothing else"},
};

[[noreturn]] void refuse(std::string_view expected, std::string_view text) {
  throw bad_input("expected " + std::string(expected) + ", got '" + std::string(text) + "'");
}

/// "a whole number from 0 to 18446744073709551615"
template <class Number>
std::string range_of(std::string_view expected) {
  using limits = std::numeric_limits<Number>;
  if constexpr (std::floating_point<Number>)
    return std::string(expected) + " that f64 can hold";
  else
    return std::string(expected) + " from " + std::to_string(limits::min()) + " to " +
           std::to_string(limits::max());
}

template <class Number>
void parse_number(std::string_view text, std::string_view expected, Number& value) {
  Number read{};
  const auto digits = usage::without_separators(text);
  const auto* end = digits.data() + digits.size();
  auto [stop, status] = std::from_chars(digits.data(), end, read);
  if (status == std::errc::result_out_of_range && stop == end)
    refuse(range_of<Number>(expected.substr(0, expected.find(" >="))), text);
  if (status != std::errc() || stop != end) refuse(expected, text);
  value = read;
}

void parse(std::string_view text, int& value) { parse_number(text, "a whole number", value); }
void parse(std::string_view text, std::uint64_t& value) { parse_number(text, "a whole number >= 0", value); }
void parse(std::string_view text, double& value) { parse_number(text, "a number", value); }
void parse(std::string_view text, std::string& value) { value = text; }
void parse(std::string_view text, std::filesystem::path& value) { value = text; }
void parse(std::string_view text, std::chrono::milliseconds& value) { value = duration_from(text); }
void parse(std::string_view text, schedule_kind& value) { value = schedule_kind_from(text); }
void parse(std::string_view text, dtype& value) {
  for (auto known : {dtype::f32, dtype::bf16, dtype::f16})
    if (text == to_string(known)) {
      value = known;
      return;
    }
  refuse("f32, bf16 or f16", text);
}
/// A word of YAML 1.1, in each of its spellings: true, True, TRUE.
bool is_word(std::string_view text, std::string_view word) {
  std::string capital(word), all(word);
  auto upper = [](char letter) { return static_cast<char>(letter - 'a' + 'A'); };
  capital[0] = upper(capital[0]);
  std::ranges::transform(all, all.begin(), upper);
  return text == word || text == capital || text == all;
}
/// None: no word for either.
std::optional<bool> truth_in(std::string_view text) {
  for (std::string_view word : {"true", "yes", "on"})
    if (is_word(text, word)) return true;
  for (std::string_view word : {"false", "no", "off"})
    if (is_word(text, word)) return false;
  return {};
}
void parse(std::string_view text, bool& value) {
  auto truth = truth_in(text == "1" ? "true" : text == "0" ? "false" : text);
  if (!truth) refuse("true or false", text);
  value = *truth;
}

std::string print(bool value) { return value ? "true" : "false"; }
std::string print(const std::string& value) { return value; }
std::string print(const std::filesystem::path& value) { return value.string(); }
std::string print(std::chrono::milliseconds value) { return to_text(value); }
std::string print(schedule_kind value) { return std::string(to_string(value)); }
std::string print(dtype value) { return std::string(to_string(value)); }
template <class Number>
requires std::integral<Number> || std::floating_point<Number> std::string print(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace

std::string job_field::option_name() const {
  auto spelled = "--" + std::string(name);
  std::ranges::replace(spelled, '_', '-');
  return spelled;
}

std::string_view job_field::value_name() const {
  // In the order of job_member.
  constexpr std::string_view names[] = {"N", "N", "X", "", "TEXT", "PATH", "TIME", "KIND", "TYPE"};
  return names[member.index()];
}

void job_field::set(std::string_view text, job_options& options) const {
  // A field that has a value where it says none is on, or off.
  if (auto truth = truth_in(text); truth && !implied.empty()) text = *truth ? implied : "";
  std::visit([&](auto field) { parse(text, options.*field); }, member);
  options.given.emplace(name);
}

std::string job_field::text(const job_options& options) const {
  return std::visit([&](auto field) { return print(options.*field); }, member);
}

std::span<const job_field> job_fields() { return fields; }

const job_field* find_job_field(std::string_view name) {
  auto* found = std::ranges::find(fields, name, &job_field::name);
  return found == std::end(fields) ? nullptr : found;
}

}  // namespace troupe::config
