#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "troupe/data/dataset.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/parallel/pipeline.hpp"
#include "troupe/schedule/simulate.hpp"
#include "troupe/world.hpp"

namespace troupe {

/// A training step is done. Rank 0 hears of every step, other ranks of none.
struct step_event {
  std::uint64_t step = 0;  ///< steps done
  std::uint64_t target_step = 0;
  std::uint64_t steps_per_epoch = 1;
  double loss = 0;           ///< mean over the step's samples
  double samples_per_s = 0;  ///< over the last second or so
};

/// A lost process is back, and what was interrupted is made up for. Every rank hears of it.
struct recovery_event {
  int rank = -1;  ///< the lost one
  std::string cause;
  std::uint64_t generation = 0;
  double seconds = 0;  ///< from the loss to the end of the interrupted step, on the launcher's clock
};

/// A job that was told to resume begins. Rank 0 hears of it, when the Trainer is made.
struct resume_event {
  bool found = false;      ///< false: there was no snapshot, it starts from the initial weights
  std::uint64_t step = 0;  ///< that it goes on from
};

/// Called on the thread that called fit or evaluate.
struct trainer_callbacks {
  std::function<void(const step_event&)> on_step = [](const step_event&) {};
  std::function<void(const recovery_event&)> on_recovered = [](const recovery_event&) {};
  std::function<void(const resume_event&)> on_resumed = [](const resume_event&) {};
};

struct fit_result {
  std::uint64_t steps = 0;
  double loss = 0;  ///< of the last step
  /// Medians over the steps: idle time as a fraction of the devices' time, planned (all stages alike) and
  /// measured.
  double planned_bubble = 0;
  double measured_bubble = 0;
  double step_s = 0;         ///< from a step's first action to its last
  int peak_activations = 0;  ///< most saved microbatches of any stage
  timeline last_step;        ///< in seconds
};

struct evaluation_result {
  double loss = 0;
  double accuracy = 0;
  std::int64_t num_samples = 0;
};

/// Trains a pipeline in a world. Every process makes the same calls in the same order; a process that the
/// launcher started again runs the same program from the beginning and is led to where the others are: calls
/// that are over return their results at once.
///
/// All throw job_failed when the job cannot go on for any process. Before a call begins, the processes
/// compare what they are about to do: options, plan, model, loss, optimizer, data. If one differs, no step is
/// done, and the call throws bad_input in every process, with who differs in what.
class Trainer {
 public:
  /// Batch, seed, threads, snapshots and traces come from world.options(). Throws bad_input naming what
  /// does not fit (more stages than layers, more devices than stages, microbatches that do not divide the
  /// batch, an option that was given and that the pipeline does not follow, a snapshot folder that holds
  /// snapshots without --resume, one in which --resume finds none that can be used, a folder that cannot be
  /// written to). Waits for the other processes. One Trainer per World.
  Trainer(World world, Pipeline pipeline, trainer_callbacks callbacks = {});

  /// Trains on `samples` for options.epochs passes (or options.steps steps). The last state is in two
  /// processes' memory, and on disk if there is a snapshot folder, before this returns. Throws bad_input for
  /// a null pointer and for fewer samples than a batch.
  fit_result fit(dataset_ptr samples);
  /// Each sample once. Throws bad_input for a null pointer and for no samples.
  evaluation_result evaluate(dataset_ptr samples);
  /// sha256, in hex, over all parameters in name order, little-endian.
  std::string weights_sha256();

  const plan& training_plan() const { return plan_; }

 private:
  void write_trace(const std::filesystem::path& folder) const;

  World world_;
  Pipeline pipeline_;
  trainer_callbacks callbacks_;
  plan plan_;
  bool reads_samples_ = false;   ///< the first or the last stage is here
  std::uint64_t steps_ = 0;      ///< that this program has asked for so far
  bool training_noted_ = false;  ///< the others' successors know that steps were done
};

}  // namespace troupe
