#include "troupe/trainer.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "troupe/data/describe_samples.hpp"
#include "troupe/data/evaluation_source.hpp"
#include "troupe/data/given_batches.hpp"
#include "troupe/data/training_source.hpp"
#include "troupe/describe_job.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/fail_job_on_exception.hpp"
#include "troupe/fault/action_faults.hpp"
#include "troupe/job/step_timeline.hpp"
#include "troupe/job_start.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/parallel/model_cut.hpp"
#include "troupe/parallel/module_program.hpp"
#include "troupe/parallel/stage_reductions.hpp"
#include "troupe/schedule/measured.hpp"
#include "troupe/schedule/plan_csv.hpp"
#include "troupe/step_rate.hpp"
#include "troupe/unused_options.hpp"
#include "troupe/world_state.hpp"

namespace troupe {
namespace {

numeric_options numerics_for(const Pipeline& pipeline, const job_options& options) {
  auto numerics = pipeline.numerics();
  numerics.on_non_finite = non_finite_policy_from(options.on_non_finite);
  return numerics;
}

/// What the parts of the model imply, where it is cut into `num_stages`.
plan_csv_options implied_by(const Pipeline& pipeline, const job_options& options, int num_stages) {
  auto partition = pipeline.partition(num_stages);
  auto reductions = reductions_of(pipeline.model(), partition, numerics_for(pipeline, options));
  return {cut_model(pipeline.model().wiring(), partition).edges, reductions.stages};
}

/// `most_devices`: as many as the processes can have.
plan plan_in_file(const Pipeline& pipeline, const job_options& options, int most_devices) {
  const auto& file = pipeline.plan_file();
  auto refuse = [&file](const std::string& problem) { throw bad_input(file.string() + ": " + problem); };
  auto read = read_plan_file(file, [&](int num_stages) {
    if (pipeline.stages() != 0 && pipeline.stages() != num_stages)
      refuse("the plan has " + std::to_string(num_stages) + " stages, but the job " +
             std::to_string(pipeline.stages()) + ". Leave --stages out, or cut the model into as many");
    try {
      return implied_by(pipeline, options, num_stages);
    } catch (const bad_input& problem) {
      throw bad_input(file.string() + ": the plan has " + std::to_string(num_stages) +
                      " stages: " + problem.what());
    }
  });
  if (read.kind == schedule_kind::forward_only)
    refuse("the plan has forwards only, which train nothing. Give it backwards");
  if (read.flush_every != pipeline.flush_every())
    refuse("the plan has " + std::to_string(read.flush_every) +
           " optimizer steps between two flushes, but the job " + std::to_string(pipeline.flush_every()) +
           ". Use --flush-every " + std::to_string(read.flush_every));
  if (read.microbatches_per_step() != pipeline.microbatches())
    refuse("the plan has " + std::to_string(read.microbatches_per_step()) + " microbatches, but the job " +
           std::to_string(pipeline.microbatches()) + ". Use --microbatches " +
           std::to_string(read.microbatches_per_step()));
  if (read.num_devices() > most_devices)
    refuse("the plan has " + std::to_string(read.num_devices()) + " devices, but the job " +
           std::to_string(most_devices) + ". Use more processes, or more --devices in each");
  return read;
}

/// The plan of a device map.
plan plan_of_map(const Pipeline& pipeline, const job_options& options, int most_devices) {
  const auto& devices = pipeline.device_of_stage();
  auto refuse = [&pipeline](const std::string& problem) {
    const auto& file = pipeline.device_map()->file();
    throw bad_input((file.empty() ? "device map" : file.string()) + ": " + problem);
  };
  if (!pipeline.plan_file().empty())
    refuse("the plan in " + pipeline.plan_file().string() +
           " says on which devices stages lie, and so does the device map. Use one of them");
  auto num_devices = *std::ranges::max_element(devices) + 1;
  if (num_devices > most_devices)
    refuse("there is no device " + std::to_string(num_devices - 1) + ", the job's devices are 0 to " +
           std::to_string(most_devices - 1) + ". Use more processes, or more --devices in each");
  auto implied = implied_by(pipeline, options, pipeline.stages());
  try {
    return make_plan({pipeline.schedule(), pipeline.stages(), pipeline.microbatches(), num_devices,
                      implied.reductions, implied.edges, devices});
  } catch (const bad_input& problem) {
    refuse(problem.what());
    throw;
  }
}

/// `most_devices`: as many as the processes can have. With fewer stages only as many are used.
plan plan_for(const Pipeline& pipeline, const job_options& options, int most_devices) {
  if (options.batch % pipeline.microbatches() != 0)
    throw bad_input(std::to_string(pipeline.microbatches()) + " microbatches do not divide the batch of " +
                    std::to_string(options.batch) +
                    " samples into equal parts. Change --microbatches or --batch");
  auto kind = pipeline.schedule();
  if (kind == schedule_kind::forward_only || kind == schedule_kind::custom)
    throw bad_input("the schedule " + std::string(to_string(kind)) +
                    " trains nothing by itself. Use 1f1b or another one, or Pipeline::plan_file");
  if (pipeline.device_map()) return plan_of_map(pipeline, options, most_devices);
  if (!pipeline.plan_file().empty()) return plan_in_file(pipeline, options, most_devices);
  auto stages = pipeline.stages() == 0 ? most_devices * usual_chunks(pipeline.schedule()) : pipeline.stages();
  if (stages < options.devices)
    throw bad_input(std::to_string(options.devices) + " devices in each process cannot share " +
                    std::to_string(stages) + " stages: use --devices " + std::to_string(stages) +
                    " or fewer, or --stages " + std::to_string(options.devices) + " or more");
  auto implied = implied_by(pipeline, options, stages);
  return make_plan({pipeline.schedule(),
                    stages,
                    pipeline.microbatches(),
                    devices_for(pipeline.schedule(), stages, most_devices),
                    implied.reductions,
                    implied.edges,
                    {},
                    pipeline.flush_every()});
}

/// The properties that must be equal in a snapshot and the job that resumes from it.
job_identity identity_of(const Pipeline& pipeline, const job_options& options) {
  job_identity identity{{"seed", std::to_string(options.seed)},
                        {"batch", std::to_string(options.batch)},
                        {"microbatches", std::to_string(pipeline.microbatches())},
                        {"threads", std::to_string(options.threads)},
                        {"parameters", std::to_string(pipeline.model().num_parameters())}};
  const auto& numerics = pipeline.numerics();
  if (numerics.precision != dtype::f32) identity.emplace_back("precision", to_string(numerics.precision));
  if (numerics.clip_grad_norm > 0)
    identity.emplace_back("clip_grad_norm", std::to_string(numerics.clip_grad_norm));
  if (pipeline.flush_every() > 1)
    identity.emplace_back("flush_every", std::to_string(pipeline.flush_every()));
  if (options.on_non_finite == "skip")
    identity.emplace_back("on_non_finite", "skip");  // counts skipped steps
  return identity;
}

job_definition definition_of(const Pipeline& pipeline, const job_options& options, const plan& training,
                             int world_size) {
  job_definition job;
  job.make_program = make_module_programs(
      pipeline.model(), pipeline.partition(training.num_stages),
      {pipeline.loss(), pipeline.optimizer(), options.seed, numerics_for(pipeline, options),
       pipeline.initial_weights(), training.flush_every});
  job.place(training, world_size);
  job.num_threads = options.threads;
  // The job's steps are runs of the plan.
  auto runs_of = [each = static_cast<std::uint64_t>(training.flush_every)](std::uint64_t steps) {
    return (steps + each - 1) / each;
  };
  job.snapshots.cadence.memory_every_steps = runs_of(options.snapshot_every);
  job.snapshots.cadence.disk_every_steps = runs_of(options.disk_every);
  job.snapshots.cadence.disk_interval = options.snapshot_interval;
  job.snapshots.folder = options.snapshot_dir;
  job.snapshots.access = snapshot_access_of(options);
  job.resume = options.resume;
  job.on_non_finite = non_finite_policy_from(options.on_non_finite);
  job.on_lost_state =
      options.on_lost_state == "restart" ? lost_state_policy::restart : lost_state_policy::stop;
  job.description = describe_job(pipeline, options, job.training, job.placed, job.home, numeric_class());
  job.identity = identity_of(pipeline, options);
  return job;
}

/// Describes a call for comparison between processes; loads the samples if this process `reads` them.
call_request request_about(const dataset_ptr& samples, const char* call, bool reads) {
  if (!samples) throw bad_input(std::string(call) + " needs a data set, got a null pointer");
  call_request request;
  request.data = describe_samples(*samples);
  if (reads) request.content = describe_content(*samples);
  return request;
}

}  // namespace

Trainer::Trainer(World world, Pipeline pipeline, trainer_callbacks callbacks)
    : world_(std::move(world)), pipeline_(std::move(pipeline)), callbacks_(std::move(callbacks)) {
  auto& self = *world_.shared_->self;
  auto number = take_place();
  const auto options = options_for_trainer(world_.options(), number);
  try {
    refuse_unused_options(options, pipeline_);
    plan_ = plan_for(pipeline_, options, world_.num_devices());
    check_faults(options.fault, plan_, world_.world_size());
  } catch (const bad_input& problem) {
    // Tell the others the cause; otherwise they would only see a lost process.
    self.fail(problem.what());
    throw;
  }
  if (plan_.num_devices() < world_.num_devices() && world_.rank() == 0) warn_of_idle_devices();
  auto job = std::make_shared<job_definition>(definition_of(pipeline_, options, plan_, world_.world_size()));
  auto start =
      agree_on_start(self, world_.shared_->incarnation, number, options, job->identity, *world_.shared_->log);
  job->begin_with = start.resume_from;
  job->trained_before = start.trained_before;
  job->job_id = self.job_id();
  number_ = number;
  stage_graph graph(plan_.num_stages, plan_.edges);
  for (const auto& [one, device] : job->placed.device_of_cell())
    if (job->home.member_of(device).rank == world_.rank().value())
      reads_samples_ |= graph.takes_samples(one.stage) || graph.computes_loss(one.stage);
  self.define(std::move(job));
  if (options.resume && world_.rank() == 0 && start.is_first)
    callbacks_.on_resumed(
        {start.resume_from.has_value(), start.resume_from ? start.resume_from->step * steps_of_run() : 0});
}

void Trainer::warn_of_idle_devices() const {
  auto num_idle = world_.num_devices() - plan_.num_devices();
  if (!pipeline_.plan_file().empty())
    world_.shared_->log->warn(
        "the plan in {} has {} devices, the job {}: {} compute nothing. Use fewer processes or --devices",
        pipeline_.plan_file().string(), plan_.num_devices(), world_.num_devices(), num_idle);
  else if (pipeline_.device_map())
    world_.shared_->log->warn(
        "the device map has {} devices, the job {}: {} compute nothing. Use fewer processes or --devices",
        plan_.num_devices(), world_.num_devices(), num_idle);
  else
    world_.shared_->log->warn(
        "{} stages for {} devices: devices without a stage compute nothing ({}). Use --stages {} for all",
        plan_.num_stages, world_.num_devices(), num_idle,
        world_.num_devices() * usual_chunks(pipeline_.schedule()));
}

/// Returns the number of earlier Trainers of this World. Waits until all processes have finished with the
/// previous one, whose resources may be released then.
std::uint32_t Trainer::take_place() {
  auto& shared = *world_.shared_;
  if (!shared.trainer.expired())
    throw std::logic_error(
        "[Trainer] expected one Trainer at a time in a World, got a second one beside it: end the first one "
        "before (let it go out of scope), or train in a World of its own");
  place_ = std::make_shared<char>();
  shared.trainer = place_;
  if (shared.num_trainers > 0) world_.barrier();
  return shared.num_trainers++;
}

fit_result Trainer::fit(dataset_ptr samples) {
  require_no_open_step("fit");
  const auto& options = world_.options();
  auto& self = *world_.shared_->self;
  std::shared_ptr<batch_source> source;
  auto request = fail_job_on_exception(self, [&] {
    auto made = request_about(samples, "fit", reads_samples_);
    source = make_training_source(samples,
                                  {options.batch, pipeline_.microbatches(), options.seed, plan_.flush_every});
    return made;
  });
  auto per_epoch = source->num_steps_per_epoch();
  request.kind = call_kind::train;
  request.source = sources_.number_of(samples, source_use::train, [&] { return self.add_source(source); });
  auto steps = static_cast<std::uint64_t>(options.epochs) * per_epoch;
  if (options.steps > steps && world_.rank() == 0)
    world_.shared_->log->warn(
        "training ends after {} steps, the {} of --epochs, before the {} of --steps: raise --epochs for more",
        steps, options.epochs == 1 ? "one epoch" : std::to_string(options.epochs) + " epochs", options.steps);
  if (options.steps != 0) steps = std::min(options.steps, steps);
  fail_job_on_exception(self, [&] { check_whole_flushes(steps, plan_.flush_every); });
  runs_ += steps / steps_of_run();
  request.target_step = runs_;

  step_rate rate;
  bool is_cancelled = false;
  std::exception_ptr thrown;
  call_observer observer;
  observer.on_step = [&](const step_progress& done) {
    if (!std::exchange(training_noted_, true)) record_training_start(self, number_);
    rate.add(std::chrono::steady_clock::now(), done.step);
    step_event event{
        done.step * steps_of_run(), done.target_step * steps_of_run(), per_epoch, done.metrics.mean_loss(),
        rate.steps_per_s() * static_cast<double>(steps_of_run()) * static_cast<double>(options.batch)};
    event.cancel = [&] {
      if (!std::exchange(is_cancelled, true)) self.cancel_training();
    };
    try {
      if (!thrown) callbacks_.on_step(event);
    } catch (...) {
      // The end of a cancelled fit is known only afterwards.
      if (!is_cancelled) throw;
      thrown = std::current_exception();
    }
  };
  observer.on_recovered = [&](const recovery_report& report) {
    callbacks_.on_recovered({report.loss.rank, report.loss.cause, report.generation, report.total_s});
  };
  auto result = self.run(request, observer);
  // Fewer than planned if cancelled; a resumed job may be further.
  runs_ = std::min(runs_, result.steps_done);
  if (given_) given_->release_before(result.replays_from);
  if (thrown) std::rethrow_exception(thrown);
  if (!options.trace_dir.empty()) write_trace(options.trace_dir);

  fit_result fitted;
  fitted.steps = result.steps_done * steps_of_run();
  fitted.loss = result.metrics.mean_loss();
  fitted.planned_bubble = summarize(simulate(plan_, {})).bubble_fraction;
  fitted.measured_bubble = result.timing.bubble;
  fitted.step_s = result.timing.span_s;
  fitted.peak_activations = static_cast<int>(result.timing.peak_activations);
  if (!result.last_step.empty()) fitted.last_step = timeline_of(result.last_step, plan_.num_devices(), 1e-9);
  return fitted;
}

void Trainer::write_trace(const std::filesystem::path& folder) const {
  world_.shared_->self->write_trace(folder / ("trace-rank-" + to_string(world_.rank()) + ".json"));
}

evaluation_result Trainer::evaluate(dataset_ptr samples) {
  require_no_open_step("evaluate");
  auto& self = *world_.shared_->self;
  std::shared_ptr<evaluation_source> source;
  auto request = fail_job_on_exception(self, [&] {
    auto made = request_about(samples, "evaluate", reads_samples_);
    source = std::make_shared<evaluation_source>(samples, world_.options().batch, pipeline_.microbatches());
    return made;
  });
  request.kind = call_kind::evaluate;
  request.target_step = runs_;
  request.num_batches = source->num_steps_per_epoch();
  request.num_microbatches = source->num_microbatches();
  request.source = sources_.number_of(samples, source_use::evaluate, [&] { return self.add_source(source); });
  auto metrics = self.run(request, {}).metrics;
  return {metrics.mean_loss(), metrics.accuracy(), metrics.num_samples};
}

std::string Trainer::weights_sha256() {
  require_no_open_step("weights_sha256");
  call_request request;
  request.kind = call_kind::hash;
  request.target_step = runs_;
  return world_.shared_->self->run(request, {}).weights_sha256;
}

}  // namespace troupe
