#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/program/job_description.hpp"
#include "troupe/program/stage_program.hpp"
#include "troupe/schedule/plan.hpp"

namespace troupe {

/// What all processes of a job do together. Each process makes the same calls in the same order.
enum class call_kind : std::uint8_t {
  train = 1,     ///< optimizer steps up to `target_step`
  evaluate = 2,  ///< forward passes over `num_batches` of source `source`
  hash = 3,      ///< sha256 of all parameters
  barrier = 4,   ///< nothing: returns when everyone has called it
  gather = 5,    ///< parameters and buffers of all stages go to the program
  predict = 6    ///< outputs of the last stage for `num_batches` of source `source` go to the program
};

struct call_request {
  std::uint32_t index = 0;  ///< the how-manieth call of this job, from 0
  call_kind kind = call_kind::barrier;
  std::uint32_t source = 0;       ///< which of the job's batch sources
  std::uint64_t target_step = 0;  ///< train: steps done when it ends; otherwise: steps done before it starts
  std::uint64_t num_batches = 0;  ///< evaluate, predict
  std::int32_t num_microbatches = 0;  ///< evaluate, predict: into which each batch is cut
  std::string data = {};              ///< train, evaluate, predict: number and shape of the samples
  /// Of the data too: dtypes, and a hash of a few samples; empty where nothing of them is read.
  std::string content = {};
  std::uint64_t num_gathered = 0;  ///< gather, predict: tensors that the program gets
  std::int32_t receiver = -1;      ///< gather, predict: the rank whose program gets them; -1: all
  /// Not empty: this process knows already that the call cannot be. It is over at once then, and all are
  /// told.
  std::string problem = {};

  bool gives_to(int rank) const { return num_gathered > 0 && (receiver < 0 || receiver == rank); }
  bool operator==(const call_request&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(index, kind, source, target_step, num_batches, num_microbatches, data, content, num_gathered,
            receiver, problem);
  }
};

/// What the processes that make a call together must agree in.
job_description description_of(const call_request& request);

/// How the devices spent a call's steps: medians over its steps, in seconds of the slowest device.
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

/// What a call came to; the same in every process.
struct call_result {
  std::uint32_t index = 0;
  std::uint64_t steps_done = 0;
  step_metrics metrics;                    ///< train: of the last step; evaluate: of all batches
  std::string weights_sha256;              ///< hash only
  step_timing timing;                      ///< train only
  std::vector<measured_action> last_step;  ///< train only: what the devices did in its last step
  call_kind kind = call_kind::barrier;
  std::uint32_t source = 0;  ///< train, evaluate, predict: where the samples came from
  std::string refused = {};  ///< not empty: nothing was done, because the processes do not do the same
  std::string problem = {};  ///< not empty: what kept a program from taking what it got; the job goes on
  template <class Archive>
  void serialize(Archive& archive) {
    archive(index, steps_done, metrics, weights_sha256, timing, last_step, kind, source, refused, problem);
  }
  bool operator==(const call_result&) const = default;
};

}  // namespace troupe
