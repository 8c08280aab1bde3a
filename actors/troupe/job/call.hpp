#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/agreement/job_description.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe::actors::job {

/// A collective operation of all processes of a job. Each process makes the same calls in the same order.
enum class call_kind : std::uint8_t {
  train = 1,             ///< optimizer steps up to `target_step`
  evaluate = 2,          ///< forward passes over `num_batches` of source `source`
  hash = 3,              ///< sha256 of all parameters
  barrier = 4,           ///< returns when every process has called it
  gather = 5,            ///< parameters and buffers of all stages go to the program
  predict = 6,           ///< outputs of the last stage for `num_batches` of source `source` go to the program
  forward_backward = 7,  ///< the optimizer step that leads to `target_step`, up to its gradients
  optimizer_step = 8,    ///< the rest of that step
  memory = 9,            ///< what each device holds (device_memory) goes to the program
  record = 10            ///< all programs get rank 0's value
};

/// Whether devices answer a call of this kind at once, and run no plan.
constexpr bool is_answered_at_once(call_kind kind) {
  return kind == call_kind::hash || kind == call_kind::gather || kind == call_kind::memory;
}

/// Whether an optimizer step is done in two calls, of which this is one.
constexpr bool is_half_step(call_kind kind) {
  return kind == call_kind::forward_backward || kind == call_kind::optimizer_step;
}
/// Whether optimizer steps are done when a call of this kind ends.
constexpr bool ends_steps(call_kind kind) {
  return kind == call_kind::train || kind == call_kind::optimizer_step;
}

struct call_request {
  std::uint32_t index = 0;  ///< number of the call in this job, from 0
  call_kind kind = call_kind::barrier;
  std::uint32_t source = 0;  ///< which of the job's batch sources
  /// train, optimizer_step: steps done when it ends, forward_backward: one more than that; otherwise: steps
  /// done before it starts.
  std::uint64_t target_step = 0;
  std::uint64_t num_batches = 0;      ///< evaluate, predict
  std::int32_t num_microbatches = 0;  ///< evaluate, predict: microbatches per batch
  std::string data = {};              ///< number and shape of the samples, where there are any
  /// dtypes of the data and a hash of a few samples; empty in processes that read no samples.
  std::string content = {};
  std::uint64_t num_gathered = 0;  ///< gather, predict, memory: tensors that the program gets
  std::int32_t receiver = -1;      ///< gather, predict: the rank whose program gets them; -1: all
  std::string value = {};          ///< record: of this process's program; that of rank 0 counts
  /// Not empty: this process cannot take part in the call, and why. The call then ends at once in all
  /// processes.
  std::string problem = {};

  bool delivers_to(int rank) const { return num_gathered > 0 && (receiver < 0 || receiver == rank); }
  bool operator==(const call_request&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(index, kind, source, target_step, num_batches, num_microbatches, data, content, num_gathered,
            receiver, value, problem);
  }
};

/// What the program called: "fit", "state_dict".
std::string name_of(const call_request& request);

/// The fields of a request that must be equal in all processes, and in a job that repeats the call.
agreement::job_description description_of(const call_request& request);

/// How the devices spent a training call: medians over its steps, in seconds.
struct step_timing {
  double span_s = 0;  ///< from the first action's begin to the last one's end, over all devices
  double busy_s = 0;  ///< computing, averaged over devices
  double bubble = 0;  ///< 1 - busy / span
  std::uint32_t peak_activations = 0;  ///< most saved microbatches of any stage
  template <class Archive>
  void serialize(Archive& archive) {
    archive(span_s, busy_s, bubble, peak_activations);
  }
  bool operator==(const step_timing&) const = default;
};

/// One action of a measured step; times in nanoseconds of the steady clock.
struct measured_action {
  std::uint32_t device = 0;
  std::uint32_t stage = 0;
  std::uint32_t microbatch = 0;
  action_kind kind = action_kind::forward;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(device, stage, microbatch, kind, begin_ns, end_ns);
  }
  bool operator==(const measured_action&) const = default;
};

/// The result of a call; the same in every process.
struct call_result {
  std::uint32_t index = 0;
  std::uint64_t steps_done = 0;
  program::step_metrics metrics;           ///< of the last step, or this one; evaluate: of all batches
  std::string weights_sha256;              ///< call_kind::hash only
  step_timing timing;                      ///< call_kind::train only
  std::vector<measured_action> last_step;  ///< train only: what the devices did in its last step
  call_kind kind = call_kind::barrier;
  std::uint32_t source = 0;  ///< which batch source, where there is one
  std::string refused = {};  ///< not empty: not executed, since the requests differ; how
  std::string value = {};    ///< call_kind::record only
  std::string problem = {};  ///< not empty: why a program failed to use its tensors; the job continues
  /// Hash of what was asked for (entered_calls::hash_of_request), a part of the snapshot's format: a job that
  /// resumes compares its calls with those of the job that wrote the snapshot.
  std::uint64_t request_hash = 0;
  bool from_snapshot = false;  ///< the job that wrote the snapshot, from which this one resumes, computed it
  /// For the program that repeats the call: its result was computed before. Not serialized.
  bool is_repeated = false;
  /// No recovery goes back to before this many steps, unless more is lost at once than the job survives: the
  /// batches of earlier steps are not needed again.
  std::uint64_t replays_from = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(index, steps_done, metrics, weights_sha256, timing, last_step, kind, source, refused, value,
            problem, replays_from, request_hash, from_snapshot);
  }
  bool operator==(const call_result&) const = default;
};

}  // namespace troupe::actors::job
