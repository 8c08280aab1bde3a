#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "troupe/data/dataset.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/error/result_gone.hpp"
#include "troupe/known_sources.hpp"
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
  /// Ends this fit for all processes, from within on_step. The steps that are under way are done too, and one
  /// more: the model, and what fit returns, are of the last of them, and evaluate, state_dict and another fit
  /// go on from there. Where rank 0 is lost before that, or a job resumes, the callback decides anew.
  std::function<void()> cancel = [] {};
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

/// Called on the thread that called fit or evaluate. An exception leaves the call of this process; the others
/// go on, and so does training: step_event::cancel ends it.
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
/// that are over return their results at once. What state_dict and predict gave is kept for that by two
/// neighbours each, in two N-th of its size in the memory of each of N processes: of the newest such call
/// always, of older ones up to 256 MiB a process. A process that needs what is not kept any more throws
/// result_gone (in a loop that goes through many large state_dicts, save is better: what is saved is not
/// asked for again).
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
  /// written to). Waits for the other processes.
  ///
  /// A World may have several Trainers, one after the other: each has its own model, steps and snapshots;
  /// those of the second one are in the folder "trainer-2" within the snapshot folder, and so on. Throws
  /// std::logic_error while another one is there.
  Trainer(World world, Pipeline pipeline, trainer_callbacks callbacks = {});

  /// Trains on `samples` for options.epochs passes (or options.steps steps). The last state is in two
  /// processes' memory, and on disk if there is a snapshot folder, before this returns. The dataset lives as
  /// long as the Trainer: a recovery may need it. Calls with the same one share what is made of it. Throws
  /// bad_input for a null pointer, for fewer samples than a batch and for samples without labels.
  fit_result fit(dataset_ptr samples);
  /// Each sample once. Throws bad_input for a null pointer, for no samples and for no labels.
  evaluation_result evaluate(dataset_ptr samples);
  /// sha256, in hex, over all parameters in name order, little-endian.
  std::string weights_sha256();

  /// All parameters and buffers (such as running means) of the model, f32, in the CPU's memory and the
  /// program's own, in name order: what Pipeline::begin_with and Module::load_state_dict take. Each process
  /// gets all of it. Throws result_gone as said above.
  std::vector<named_tensor> state_dict();
  /// The model's outputs [N, ...] for all N samples in their order, as in evaluation; labels are not needed.
  /// Each process gets all of them. Throws bad_input for a null pointer and for no samples, and result_gone.
  tensor predict(dataset_ptr samples);
  /// Rank 0 writes state_dict() to a safetensors file, which read_weights reads, or leaves what was there;
  /// returns when it is on disk. In a process that is started again a file that was written is not written
  /// again. Throws bad_input in every process if it cannot be written, as a rule before anything is gathered;
  /// the job can go on.
  void save(const std::filesystem::path& file);

  const plan& training_plan() const { return plan_; }

 private:
  std::uint32_t take_place();
  void write_trace(const std::filesystem::path& folder) const;

  World world_;
  Pipeline pipeline_;
  trainer_callbacks callbacks_;
  plan plan_;
  known_sources sources_;
  std::shared_ptr<void> place_;  ///< while this is there, no other Trainer may be
  std::uint32_t number_ = 0;     ///< of the World's Trainers, from 0
  bool reads_samples_ = false;   ///< the first or the last stage is here
  std::uint64_t steps_ = 0;      ///< that this program has asked for so far, less those it cancelled
  bool training_noted_ = false;  ///< the others' successors know that steps were done
};

}  // namespace troupe
