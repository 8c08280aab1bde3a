#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "troupe/batch_source_registry.hpp"
#include "troupe/data/dataset.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job_error/job_errors.hpp"
#include "troupe/memory_report.hpp"
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/program/batch_source.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/schedule/cut.hpp"
#include "troupe/schedule/simulation/simulate.hpp"
#include "troupe/world.hpp"

namespace troupe {

namespace detail {
class given_batches;
class replaceable_source;
}  // namespace detail
namespace actors::job {
class latest_copies;
class trained_data;
}  // namespace actors::job
namespace snapshot {
struct snapshot_manifest;
}  // namespace snapshot

/// A completed training step, or with Pipeline::flush_every(K) K of them. Only rank 0 receives these events.
struct step_event {
  std::uint64_t step = 0;  ///< optimizer steps done so far
  /// At which this fit ends, unless it is cancelled or the job is stopped before.
  std::uint64_t target_step = 0;
  std::uint64_t steps_per_epoch = 1;
  double loss = 0;           ///< mean over the samples of the step or steps
  double samples_per_s = 0;  ///< averaged over about the last two seconds
  /// Called from within on_step, ends this fit on all processes. The steps in flight and one more are
  /// completed first; the model and the result of fit are those of the last step, from which evaluate,
  /// state_dict and another fit continue. If rank 0 is lost before that, or the job resumes, the callback
  /// decides again.
  std::function<void()> cancel = [] {};
};

/// A lost process was replaced, or a failed stage or device started again, and the interrupted step is done.
/// Every rank receives this event.
struct recovery_event {
  int rank = -1;  ///< the lost rank; -1: no process was lost
  std::string cause;
  std::uint64_t generation = 0;
  double seconds = 0;  ///< from the loss to the end of the interrupted step, on the launcher's clock
};

/// A job with --resume starts. Only rank 0 receives this event, when the Trainer is constructed.
struct resume_event {
  bool found = false;      ///< false: there was no snapshot, it starts from the initial weights
  std::uint64_t step = 0;  ///< the step of the snapshot
};

/// Called on the thread that called fit or evaluate. A callback may call pause, resume, step, and those
/// functions of the Trainer and the World that say thread-safe or that wait for no process. All others,
/// making a group too, throw std::logic_error, since the running call cannot end before its callback returns.
/// A callback that destroys the Trainer ends the program with an error. An exception propagates out of this
/// process's call only; the other processes and the training continue. Use step_event::cancel to end
/// training.
struct trainer_callbacks {
  std::function<void(const step_event&)> on_step = [](const step_event&) {};
  std::function<void(const recovery_event&)> on_recovered = [](const recovery_event&) {};
  std::function<void(const resume_event&)> on_resumed = [](const resume_event&) {};
};

struct fit_result {
  std::uint64_t steps = 0;
  double loss = 0;  ///< mean loss of the last step
  /// Medians over the steps of the idle fraction of the devices' time: planned (assuming equal stages) and
  /// measured.
  double planned_bubble = 0;
  double measured_bubble = 0;
  double step_s = 0;         ///< seconds from a step's first action to its last; of K steps together
  int peak_activations = 0;  ///< maximum number of microbatches whose activations a stage held
  timeline last_step;        ///< what the devices did in the last step, in seconds
  /// This process's, with trace_dir; empty: none was asked for, or it could not be written.
  std::filesystem::path trace = {};
};

struct evaluation_result {
  double loss = 0;
  double accuracy = 0;
  std::int64_t num_samples = 0;
};

/// See Trainer::latest_weights.
struct weights_at_step {
  std::uint64_t step = 0;  ///< optimizer steps that made them
  /// All parameters and buffers: f32, in CPU memory of their own, sorted by name, as state_dict returns them.
  std::vector<named_tensor> weights;
};

/// Whether the job is paused, see Trainer::pause.
struct pause_status {
  bool is_paused = false;
  /// Every device stands where the job stops; until then some are still computing what they were granted.
  bool is_standing = false;
  std::chrono::system_clock::time_point since;  ///< when the job was paused, on rank 0's clock
  /// Where each device stops: the next action of its list (training_plan().actions_of) that it may not do.
  /// Steps, here runs of the plan (Pipeline::flush_every), count from 0. In evaluate and predict they are
  /// batches, of which each replica runs another one. In the last step some may have none, and pass where
  /// they stop. Empty if the job is not paused, or waits for its next call.
  cut stop;
  /// How many pauses, steps and resumptions of all processes were carried out so far.
  std::uint64_t num_changes = 0;
};

/// Trains a pipeline in a World. Every process makes the same calls in the same order. A process that the
/// launcher restarts runs the same program from the beginning; calls that the other processes have completed
/// return their recorded results at once. For that, two processes store each chunk of the results of
/// state_dict and predict, so that each of N processes holds 2/N of a result. The latest result is always
/// stored, older ones up to 256 MiB per process. A restarted process that needs a result that is no longer
/// stored throws result_gone. (A loop over many large state_dicts should use save: a saved result is not
/// needed again.)
///
/// A job that resumes from a snapshot (--resume) does the same with the results of calls that were over when
/// the snapshot was written. It does so from the first call on and as long as the program makes the same
/// calls with the same data. state_dict, predict, forward and memory_report then throw result_gone in every
/// process. From the first other call on, results are those of the snapshot's state. A warning tells where
/// these are of an earlier step (World::is_replaying, record).
///
/// One call of a World and its Trainers runs at a time. Another one meanwhile, from a callback or another
/// thread, throws std::logic_error at once and changes nothing.
///
/// All calls throw job_failed when the job cannot continue. Before a call begins, the processes compare
/// options, plan, model, loss, optimizer and data. If a process differs, no step is run and the call throws
/// bad_input in every process; the message names the rank and the difference.
class Trainer {
 public:
  /// Takes batch, seed, threads, snapshots and traces from world.options(). Waits for the other processes.
  /// Throws bad_input with the reason:
  /// - more stages than layers
  /// - microbatches that do not divide the batch
  /// - a pipeline option that the program ignores
  /// - a snapshot folder that contains snapshots, without --resume
  /// - a snapshot folder without a usable snapshot, with --resume
  /// - a folder that is not writable
  ///
  /// A World may have several Trainers, one after the other, each with its own model, steps and snapshots;
  /// the snapshots of the second Trainer are in the subfolder "trainer-2", and so on. Throws std::logic_error
  /// while another Trainer of the World exists.
  Trainer(World world, Pipeline pipeline, trainer_callbacks callbacks = {});

  /// Trains on `samples` for options.epochs epochs (or options.steps steps). Before it returns, the final
  /// state is in the memory of two processes, and on disk if there is a snapshot folder. The Trainer keeps
  /// the dataset alive, since a recovery may need it. A further fit of the same dataset goes on where the one
  /// before ended, also within an epoch; another dataset begins with its first epoch. Throws bad_input for a
  /// null pointer, for fewer samples than a batch, and for samples without labels. Throws bad_input too if
  /// the job resumes within this fit from a snapshot of another number or shape of samples, or another order
  /// of a stream.
  fit_result fit(dataset_ptr samples);
  /// Evaluates each sample once; the replicas share the batches, if they have the same weights and buffers.
  /// Throws bad_input in every process, after which the job can continue, for a
  /// null pointer and for samples or labels that are missing.
  evaluation_result evaluate(dataset_ptr samples);
  /// The SHA-256, in hex, of all parameters in name order, little-endian. With Pipeline::average_every, this
  /// and all other calls about the weights are about those of replica 0, and log a warning between two
  /// averages.
  std::string weights_sha256();

  /// Copies of all parameters and buffers (such as running means) of the model: f32, in CPU memory, sorted by
  /// name, as Pipeline::initial_weights and Module::load_state_dict take them. Every process gets all of
  /// them. Throws result_gone as described above.
  std::vector<named_tensor> state_dict();
  /// The weights of a recent step, without waiting for the job: for a thread that serves, logs or evaluates
  /// them while fit runs, or a callback. No collective call: a process makes it when it likes. Thread-safe
  /// while the Trainer exists.
  ///
  /// They are those of the newest copy of the state of all stages that is in this process's memory, the same
  /// bits that state_dict would have returned after that step. Copies are made as --snapshot-every says, else
  /// so that copying takes at most 2 % of the time, and at the end of fit. After a fit this has what
  /// state_dict() has (with several processes and a snapshot folder a moment later). weights_at_step::step
  /// never goes back. None before the first copy; in a job that resumes, before its first call; in a process
  /// that was started again, until it has repeated the calls of before. With Pipeline::average_every they are
  /// replica 0's; a warning says once that they are between two averages.
  ///
  /// Copies all weights once, on the calling thread (one pass over the memory); the devices go on meanwhile.
  /// Throws std::logic_error in a process that never holds the whole model: it hosts some of the stages (or
  /// shards) only, and keeps the second copy of none or too few of the others. So it is with three processes
  /// or more that have one stage each. There read_weights(the --snapshot-dir) has all weights.
  std::optional<weights_at_step> latest_weights() const;
  /// The model's outputs [N, ...] in evaluation mode for all N samples, in order; labels are not needed.
  /// Every process gets all outputs. Throws bad_input in every process, after which the job can continue, for
  /// a null pointer and for no samples, and result_gone.
  tensor predict(dataset_ptr samples);
  /// Rank 0 atomically writes state_dict() to a safetensors file, which read_weights reads. Returns when the
  /// file is on disk. A restarted process does not write the file again. Throws bad_input in every process if
  /// the file cannot be written, usually before the weights are gathered; the job can continue. A job that
  /// resumes does not write it again either, and warns if the file of an earlier step is not there.
  /// A file named NAME.safetensors.index.json is the index of several of at most `max_file_bytes` each
  /// (write_sharded_safetensors).
  void save(const std::filesystem::path& file, std::uint64_t max_file_bytes = usual_file_bytes);

  /// Rank 0's `value` in every process: something that the program decides by and that its calls do not give,
  /// such as the time, a random number or the name of a file that it made. It is kept with the results of
  /// calls: a restarted process and a job that resumes get the value of the first time. At most 64 KiB;
  /// throws bad_input in every process for more.
  std::string record(std::string value);

  /// What each device of the job holds, by use, and held at most: parameters, gradients, the optimizer's
  /// state, activations and so on, of all processes. With the costs of the model's layers (profile_model,
  /// with microbatches of this job's size), what the plan predicts stands beside it. A collective call; every
  /// process gets the same report. Peaks are of training after a step only; a device that another process
  /// took over begins anew. Throws bad_input for a profile of another model or microbatch, result_gone as
  /// described above, and std::logic_error between forward_backward and optimizer_step.
  troupe::memory_report memory_report();
  troupe::memory_report memory_report(const cost_profile& profile);

  /// A loop of one's own: forward_backward computes the gradients of a batch and returns its mean loss,
  /// optimizer_step applies them and returns the number of steps done. Every process gives the same batch.
  /// Together they are one step, the same as fit's: the same batches give the same bits, whatever is lost
  /// within or between the two calls.
  ///
  /// A batch has samples [N, ...] and targets [N, ...], in memory of any device, where N is a multiple of the
  /// microbatches of all replicas. It is copied, and kept until a state after its step is safe: on two
  /// processes, or with a snapshot folder on disk. Unlike fit, optimizer_step does not wait for its state to
  /// be copied: copies and snapshots are made as --snapshot-every, --disk-every and --snapshot-interval say.
  /// on_step is not called, since the loop is the caller's.
  ///
  /// Throws bad_input in every process, after which the job can continue, for a batch without samples or
  /// targets, whose numbers differ, or that the microbatches do not divide. Between the two calls, all calls
  /// of the Trainer but pause, resume, step and pause_status throw std::logic_error, and so does
  /// optimizer_step before forward_backward. forward_backward also throws it with Pipeline::flush_every(K >
  /// 1).
  double forward_backward(const batch& given);
  std::uint64_t optimizer_step();
  /// The model's outputs [N, ...] in evaluation mode for a batch of any size; targets are not needed. As
  /// predict, which does the same for a data set.
  tensor forward(const batch& given);

  /// Pauses the job of all processes. A running fit, evaluate or predict stands still after the steps that
  /// the devices were granted (at most 8; fewer if they take more than about 2 s, but at least 2). Later ones
  /// stand still before their first step. A pause lasts until some process calls resume. Processes may be
  /// lost and replaced meanwhile; the job then stands where it stood before. A request to stop the job
  /// (SIGTERM) ends a pause. A paused job is not taken for one that hangs. The functions pause, resume and
  /// step may be called from any thread of any process while the Trainer exists, and return at once;
  /// pause_status says what came of them.
  void pause();
  void resume();
  /// Takes a paused job `count` units further and pauses it again; pauses one that runs first. The job stands
  /// at cuts at which no device waits for another; a step is a run of the plan. Throws bad_input for a count
  /// of 0, or of more than 1000 microbatches or actions.
  void step(step_unit unit = step_unit::step, std::uint64_t count = 1);
  /// As this process knows it, some milliseconds late. Thread-safe.
  troupe::pause_status pause_status() const;

  /// The optimizer steps of the snapshot from which this job resumed (--resume), the same in every process
  /// and for its whole life; none: it began with the initial weights. Thread-safe.
  std::optional<std::uint64_t> resumed_step() const { return resumed_step_; }

  const plan& training_plan() const { return plan_; }

 private:
  std::uint32_t take_place();
  void warn_of_idle_devices() const;
  std::string advice_on_stages(int num_devices) const;
  void resume_data(const snapshot::snapshot_manifest& from);
  std::filesystem::path write_trace(const std::filesystem::path& folder) const;
  /// Optimizer steps of one run of the plan, which is a step of the job.
  std::uint64_t steps_of_run() const { return static_cast<std::uint64_t>(plan_.flush_every); }
  void require_no_open_step(const char* call) const;
  void note_safe_state(std::uint64_t replays_from);
  void warn_of_own_weights(const char* call) const;
  std::vector<held_memory> predicted_memory(const cost_profile& profile,
                                            const std::vector<compute_place>& places) const;
  /// `number_of`: the number of the batch source that it is given.
  tensor outputs_of(const dataset_ptr& samples,
                    const std::function<std::uint32_t(std::shared_ptr<batch_source>)>& number_of);

  World world_;
  Pipeline pipeline_;
  trainer_callbacks callbacks_;
  plan plan_;
  batch_source_registry sources_;
  std::shared_ptr<actors::job::trained_data> data_;
  std::shared_ptr<void> place_;  ///< no other Trainer may exist while this does
  std::uint32_t number_ = 0;     ///< index among the World's Trainers
  std::optional<std::uint64_t> resumed_step_;
  std::shared_ptr<actors::job::latest_copies> latest_;  ///< null: this process never holds all stages
  std::shared_ptr<std::atomic<bool>> warned_of_latest_ = std::make_shared<std::atomic<bool>>(false);
  bool reads_samples_ = false;     ///< this process has a stage that takes samples or targets
  std::uint64_t runs_ = 0;         ///< of the plan, requested so far, without cancelled ones
  bool safe_state_noted_ = false;  ///< restarted processes know that trained state was safe
  bool is_step_open_ = false;      ///< forward_backward was called, and optimizer_step was not yet
  // Batches that the program gave, and the numbers of their sources; null: none yet.
  std::shared_ptr<detail::given_batches> given_;
  std::shared_ptr<detail::replaceable_source> forwarded_;
  std::uint32_t given_source_ = 0, forwarded_source_ = 0;
  bool warned_of_batches_ = false;
};

}  // namespace troupe
