#include "troupe/trainer.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/data/detail/describe_samples.hpp"
#include "troupe/data/detail/evaluation_source.hpp"
#include "troupe/data/detail/given_batches.hpp"
#include "troupe/data/detail/training_source.hpp"
#include "troupe/detail/pipeline_job.hpp"
#include "troupe/detail/refused_call.hpp"
#include "troupe/detail/start/job_start.hpp"
#include "troupe/detail/step_rate.hpp"
#include "troupe/detail/unused_options.hpp"
#include "troupe/detail/world_state.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/fault/action_faults.hpp"
#include "troupe/job/latest_copies.hpp"
#include "troupe/job/step_timeline.hpp"
#include "troupe/job/trained_data.hpp"
#include "troupe/pipeline/detail/agreement/layer_modes.hpp"
#include "troupe/pipeline/partition.hpp"
#include "troupe/schedule/gradient_order.hpp"
#include "troupe/schedule/simulation/measured.hpp"

namespace troupe {
namespace {

/// Describes a call for comparison between processes; loads the samples if this process `reads` them.
actors::job::call_request request_about(const dataset_ptr& samples, const char* call, bool reads) {
  if (!samples) throw bad_input(std::string(call) + " needs a data set, got a null pointer");
  actors::job::call_request request;
  request.data = detail::describe_samples(*samples);
  if (reads) request.content = detail::describe_content(*samples);
  return request;
}

}  // namespace

Trainer::Trainer(World world, Pipeline pipeline, trainer_callbacks callbacks)
    : world_(std::move(world)), pipeline_(std::move(pipeline)), callbacks_(std::move(callbacks)) {
  auto& self = *world_.shared_->self;
  auto number = take_place();
  const auto options = detail::options_for_trainer(world_.options(), number);
  try {
    pipeline_.read_device_map();
    detail::refuse_unused_options(options, pipeline_);
    plan_ = detail::plan_for(pipeline_, options, world_.num_devices());
    fault::check_faults(options.fault, plan_, world_.world_size());
  } catch (const bad_input& problem) {
    // Tell the others the cause; otherwise they would only see a lost process. A job of one process can go on
    // with another Trainer.
    if (self.world_size() > 1) self.fail(problem.what(), failure_kind::bad_input);
    throw;
  }
  if (plan_.num_job_devices() < world_.num_devices() && world_.rank() == 0) warn_of_idle_devices();
  if (schedule::gradient_order_of(plan_) == schedule::gradient_order::descending && world_.rank() == 0)
    world_.shared_->log->warn(
        "the plan in {} adds up weight gradients in descending order of microbatches: the weights have other "
        "bits than with other schedules, and snapshots can be resumed with plans of this order only",
        pipeline_.plan_file().string());
  bool ignores = pipeline_.num_shards() == 1
                     ? schedule::shards_parameters(plan_)
                     : schedule::frees_parameters(plan_) && !pipeline_.gathers().frees;
  if (ignores && world_.rank() == 0)
    world_.shared_->log->warn(
        "the plan in {} {} the parameters of stages ({}), but this job holds them whole on every device: "
        "those actions save no memory. With several replicas and --shard full they do",
        pipeline_.plan_file().string(), pipeline_.num_shards() == 1 ? "shards" : "frees",
        pipeline_.num_shards() == 1 ? "U and S, PyTorch's UNSHARD and RESHARD" : "S, PyTorch's RESHARD");
  if (auto modes = detail::modes_of(pipeline_.model());
      modes.trained.empty() && !modes.evaluated.empty() && world_.rank() == 0)
    world_.shared_->log->warn(
        "the whole model is in evaluation mode, and is trained so: dropout does nothing, batch norms keep "
        "their running statistics. Call train() on the model before the Pipeline takes it for training mode");
  bool is_asked_for = world_.options().given.contains("devices");
  if (is_asked_for && plan_.num_job_devices() > world_.num_devices() && world_.rank() == 0)
    world_.shared_->log->warn(
        "{} replicas on {} devices each need {} devices, and the job has {}: some processes compute on more "
        "than --devices, each on a thread of its own. Use a multiple of {} for equal shares",
        plan_.mesh.num_replicas, plan_.num_devices(), plan_.num_job_devices(), world_.num_devices(),
        plan_.mesh.num_replicas);
  auto job = std::make_shared<actors::job::job_definition>(
      detail::definition_of(pipeline_, options, plan_, world_.world_size(), world_.shared_->places));
  auto start =
      detail::agree_on_start(self, world_.shared_->incarnation, number, options, *job, *world_.shared_->log);
  world_.shared_->folder = std::move(start.lock);
  job->begin_with = start.resume_from;
  job->trained_before = start.trained_before;
  job->job_id = self.job_id();
  job->make_group = world_.shared_->job_groups();
  number_ = number;
  if (start.resumed_step) resumed_step_ = *start.resumed_step * steps_of_run();
  data_ = job->data;
  if (start.resume_from) resume_data(*start.resume_from);
  schedule::stage_graph graph(plan_.num_stages, plan_.edges);
  for (const auto& [one, device] : job->placed.device_of_cell())
    if (job->home.member_of(device) == world_.rank())
      reads_samples_ |= graph.takes_samples(one.stage) || graph.computes_loss(one.stage);
  if (gets_complete_copies(*job, world_.rank(), world_.world_size()))
    latest_ = job->latest = std::make_shared<actors::job::latest_copies>(job->parts);
  self.define(std::move(job));
  if (options.resume && world_.rank() == 0 && start.is_first) {
    detail::running_call::scope call(world_.shared_->running, "Trainer's constructor");
    detail::running_call::callback callback(world_.shared_->running, "on_resumed");
    callbacks_.on_resumed(
        {start.resume_from.has_value(), start.resume_from ? start.resume_from->step * steps_of_run() : 0});
  }
}

void Trainer::resume_data(const snapshot::snapshot_manifest& from) {
  data_->resume(from.step, from.data);
  if (!from.data)
    world_.shared_->log->warn(
        "--resume: an earlier version of Troupe wrote the snapshot of step {}, which does not say the number "
        "of samples: make sure that the data are the same, since they are not compared",
        from.step * steps_of_run());
}

void Trainer::warn_of_idle_devices() const {
  auto num_idle = world_.num_devices() - plan_.num_job_devices();
  if (!pipeline_.plan_file().empty())
    world_.shared_->log->warn(
        "the plan in {} has {} devices, the job {}: {} of them without work. Use fewer processes or "
        "--devices",
        pipeline_.plan_file().string(), plan_.num_job_devices(), world_.num_devices(), num_idle);
  else if (pipeline_.device_map())
    world_.shared_->log->warn(
        "the device map has {} devices, the job {}: {} of them without work. The processes share the devices "
        "of "
        "the map evenly, in order, whatever --devices is. Use fewer processes or --devices",
        plan_.num_job_devices(), world_.num_devices(), num_idle);
  else if (plan_.mesh.num_replicas > 1)
    world_.shared_->log->warn(
        "{} replicas of {} stages on {} devices each leave {} of the job's {} devices idle. {}",
        plan_.mesh.num_replicas, plan_.num_stages, plan_.num_devices(), num_idle, world_.num_devices(),
        advice_on_stages((world_.num_devices() + plan_.mesh.num_replicas - 1) / plan_.mesh.num_replicas));
  else
    world_.shared_->log->warn("{} stages for {} devices: devices without a stage compute nothing ({}). {}",
                              plan_.num_stages, world_.num_devices(), num_idle,
                              advice_on_stages(world_.num_devices()));
}

/// How all of `num_devices` devices of a replica get a stage.
std::string Trainer::advice_on_stages(int num_devices) const {
  auto wanted = num_devices * usual_chunks(pipeline_.schedule());
  if (auto most = most_stages(pipeline_.model()); wanted > most)
    return "The model has layers for " + std::to_string(most) + " stages: use fewer processes or --devices";
  return "Use --stages " + std::to_string(wanted) + " for all";
}

/// Returns the number of earlier Trainers of this World. Waits until all processes have finished with the
/// previous one, whose resources may be released then.
std::uint32_t Trainer::take_place() {
  auto& shared = *world_.shared_;
  if (!shared.trainer.expired())
    throw std::logic_error(
        "[Trainer] expected one Trainer at a time in a World, got a second one beside it: end the first one "
        "before (let it go out of scope), or train in a World of its own");
  // Ends with the Trainer, and with it the program if a call of it still runs: what that uses is gone.
  place_ = std::shared_ptr<char>(new char(0), [of = std::weak_ptr(world_.shared_)](char* place) {
    delete place;
    auto world = of.lock();
    auto running = world ? world->running.text() : std::string();
    if (running.find("Trainer::") == std::string::npos) return;
    std::cerr
        << "[Trainer] expected a Trainer that lives until its calls end, got one that is destroyed while "
        << running << " runs: keep it until then; step_event::cancel ends a fit early" << std::endl;
    std::abort();
  });
  shared.trainer = place_;
  if (shared.num_trainers > 0) world_.barrier();
  return shared.num_trainers++;
}

fit_result Trainer::fit(dataset_ptr samples) {
  detail::running_call::scope running(world_.shared_->running, "Trainer::fit");
  require_no_open_step("fit");
  const auto& options = world_.options();
  auto& self = *world_.shared_->self;
  std::shared_ptr<batch_source> source;
  auto request = detail::fail_job_on_exception(self, [&] {
    auto made = request_about(samples, "fit", reads_samples_);
    auto position = [data = data_, of = samples.get()](std::uint64_t step) {
      return data->position_of(of, step);
    };
    source = detail::make_training_source(samples, {options.batch, pipeline_.microbatches(), options.seed,
                                                    plan_.flush_every, plan_.mesh.num_replicas, position});
    return made;
  });
  auto per_epoch = source->num_steps_per_epoch();
  request.kind = actors::job::call_kind::train;
  auto steps = static_cast<std::uint64_t>(options.epochs) * per_epoch;
  if (options.steps > steps && world_.rank() == 0)
    world_.shared_->log->warn(
        "training ends after {} steps, the {} of --epochs, before the {} of --steps: raise --epochs for more",
        steps, options.epochs == 1 ? "one epoch" : std::to_string(options.epochs) + " epochs", options.steps);
  if (options.steps != 0) steps = std::min(options.steps, steps);
  detail::fail_job_on_exception(self, [&] {
    if (auto problem = detail::problem_of_training(pipeline_); !problem.empty())
      throw bad_input("fit: " + problem);
    check_whole_flushes(steps, plan_.flush_every);
    check_whole_averages(runs_ + steps, pipeline_.numerics().exchange.average_every);
  });
  auto first = std::exchange(runs_, runs_ + steps / steps_of_run());
  request.target_step = runs_;
  detail::fail_job_on_exception(self, [&] { data_->add(first, runs_, samples.get(), request.data); });
  request.source = sources_.number_of(samples, source_use::train, [&] { return self.add_source(source); });

  detail::step_rate rate;
  bool is_cancelled = false;
  std::exception_ptr thrown;
  actors::process::call_observer observer;
  observer.on_step = [&](const actors::job::step_progress& done) {
    note_safe_state(done.replays_from);
    rate.add(std::chrono::steady_clock::now(), done.step);
    step_event event{
        done.step * steps_of_run(), request.target_step * steps_of_run(), per_epoch, done.metrics.mean_loss(),
        rate.steps_per_s() * static_cast<double>(steps_of_run()) * static_cast<double>(options.batch)};
    event.cancel = [&] {
      if (!std::exchange(is_cancelled, true)) self.cancel_training();
    };
    try {
      detail::running_call::callback callback(world_.shared_->running, "on_step");
      if (!thrown) callbacks_.on_step(event);
    } catch (...) {
      // The end of a cancelled fit is known only afterwards.
      if (!is_cancelled) throw;
      thrown = std::current_exception();
    }
  };
  observer.on_recovered = [&](const cluster::recovery_report& report) {
    detail::running_call::callback callback(world_.shared_->running, "on_recovered");
    callbacks_.on_recovered({report.loss.rank, report.loss.cause, report.generation, report.total_s});
  };
  auto result = self.run(request, observer);
  note_safe_state(result.replays_from);
  // Fewer than planned if cancelled; a resumed job may be further.
  runs_ = std::min(runs_, result.steps_done);
  if (given_) given_->release_before(result.replays_from);
  if (thrown) std::rethrow_exception(thrown);

  fit_result fitted;
  if (!options.trace_dir.empty()) fitted.trace = write_trace(options.trace_dir);
  fitted.steps = result.steps_done * steps_of_run();
  fitted.loss = result.metrics.mean_loss();
  fitted.planned_bubble = schedule::summarize(simulate(plan_, {})).bubble_fraction;
  fitted.measured_bubble = result.timing.bubble;
  fitted.step_s = result.timing.span_s;
  fitted.peak_activations = static_cast<int>(result.timing.peak_activations);
  if (!result.last_step.empty())
    fitted.last_step = timeline_of(result.last_step, plan_.num_job_devices(), 1e-9);
  return fitted;
}

/// Returns the file. Empty: it could not be written, which is no reason to lose what was trained.
std::filesystem::path Trainer::write_trace(const std::filesystem::path& folder) const {
  auto file = folder / ("trace-rank-" + to_string(world_.rank()) + ".json");
  try {
    world_.shared_->self->write_trace(file);
    return file;
  } catch (const std::exception& problem) {
    world_.shared_->log->warn("--trace-dir: there is no trace of this fit: {}", problem.what());
    return {};
  }
}

evaluation_result Trainer::evaluate(dataset_ptr samples) {
  detail::running_call::scope running(world_.shared_->running, "Trainer::evaluate");
  require_no_open_step("evaluate");
  warn_of_own_weights("evaluate");
  auto& self = *world_.shared_->self;
  std::shared_ptr<detail::evaluation_source> source;
  actors::job::call_request request;
  detail::prepare_call(self, actors::job::call_kind::evaluate, runs_, [&] {
    request = request_about(samples, "evaluate", reads_samples_);
    source = std::make_shared<detail::evaluation_source>(samples, world_.options().batch,
                                                         pipeline_.microbatches());
  });
  request.kind = actors::job::call_kind::evaluate;
  request.target_step = runs_;
  request.num_batches = source->num_steps_per_epoch();
  request.num_microbatches = source->num_microbatches();
  request.source = sources_.number_of(samples, source_use::evaluate, [&] { return self.add_source(source); });
  auto metrics = self.run(request, {}).metrics;
  return {metrics.mean_loss(), metrics.accuracy(), metrics.num_samples};
}

std::string Trainer::weights_sha256() {
  detail::running_call::scope running(world_.shared_->running, "Trainer::weights_sha256");
  require_no_open_step("weights_sha256");
  warn_of_own_weights("weights_sha256");
  actors::job::call_request request;
  request.kind = actors::job::call_kind::hash;
  request.target_step = runs_;
  auto result = world_.shared_->self->run(request, {});
  if (!result.problem.empty()) throw bad_input(result.problem);
  return result.weights_sha256;
}

std::string Trainer::record(std::string value) {
  detail::running_call::scope running(world_.shared_->running, "Trainer::record");
  require_no_open_step("record");
  constexpr std::size_t most_bytes = 64 << 10;
  actors::job::call_request request;
  request.kind = actors::job::call_kind::record;
  request.target_step = runs_;
  if (world_.rank() == 0 && value.size() > most_bytes)
    request.problem = "record: expected a value of at most 64 KiB, got " + std::to_string(value.size()) +
                      " bytes. Write it to a file, and record the file's name";
  else
    request.value = std::move(value);
  auto result = world_.shared_->self->run(request, {});
  if (!result.problem.empty()) throw bad_input(result.problem);
  return result.value;
}

}  // namespace troupe
