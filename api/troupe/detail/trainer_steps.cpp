// Trainer: steps that the program makes itself, batch by batch.
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/data/detail/describe_samples.hpp"
#include "troupe/data/detail/given_batches.hpp"
#include "troupe/data/detail/replaceable_source.hpp"
#include "troupe/detail/pipeline_job.hpp"
#include "troupe/detail/refused_call.hpp"
#include "troupe/detail/replica_weights.hpp"
#include "troupe/detail/start/job_start.hpp"
#include "troupe/detail/world_state.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/trainer.hpp"

namespace troupe {
namespace {

/// Of batches that are kept for a recovery: above it the program is told.
constexpr std::size_t many_bytes = std::size_t{1} << 30;

std::string text_of(const char* call, const std::string& expected, const std::string& came,
                    const std::string& advice) {
  return "[Trainer::" + std::string(call) + "] expected " + expected + ", got " + came + ". " + advice;
}

std::string problem_of_samples(const char* call, const batch& given) {
  const auto& inputs = given.inputs;
  if (inputs.defined() && inputs.shape().rank() > 0 && inputs.shape()[0] > 0) return {};
  return text_of(call, "samples [N, ...]", describe(inputs), "Give at least one sample as batch::inputs");
}

/// `microbatches`: of all replicas.
std::string problem_of(const batch& given, int microbatches) {
  constexpr auto call = "forward_backward";
  if (auto problem = problem_of_samples(call, given); !problem.empty()) return problem;
  auto num_samples = given.inputs.shape()[0];
  const auto& targets = given.targets;
  if (!targets.defined())
    return text_of(call, "targets for " + std::to_string(num_samples) + " samples", "none",
                   "Give them as batch::targets; without targets use Trainer::forward, which trains nothing");
  if (targets.shape().rank() < 1 || targets.shape()[0] != num_samples)
    return text_of(call, "targets for " + std::to_string(num_samples) + " samples", describe(targets),
                   "Axis 0 of batch::inputs and batch::targets counts the samples");
  if (num_samples % microbatches != 0)
    return text_of(call, "a multiple of " + std::to_string(microbatches) + " samples",
                   std::to_string(num_samples),
                   "The pipeline cuts a batch into " + std::to_string(microbatches) +
                       " equal microbatches: give a multiple, or change --microbatches or --replicas");
  return {};
}

actors::process::call_observer observer_of(const trainer_callbacks& callbacks,
                                           detail::running_call& running) {
  actors::process::call_observer observer;
  observer.on_recovered = [&callbacks, &running](const cluster::recovery_report& report) {
    detail::running_call::callback callback(running, "on_recovered");
    callbacks.on_recovered({report.loss.rank, report.loss.cause, report.generation, report.total_s});
  };
  return observer;
}

}  // namespace

void Trainer::require_no_open_step(const char* call) const {
  if (is_step_open_)
    throw std::logic_error("[Trainer::" + std::string(call) +
                           "] expected optimizer_step first, which ends the step that forward_backward "
                           "began: until then the state is that of no step");
}

void Trainer::warn_of_own_weights(const char* call) const {
  auto note = detail::note_on_weights(call, pipeline_.numerics().exchange.average_every, runs_);
  if (!note.empty() && world_.rank() == 0) world_.shared_->log->warn("{}", note);
}

double Trainer::forward_backward(const batch& given) {
  detail::running_call::scope running(world_.shared_->running, "Trainer::forward_backward");
  if (is_step_open_)
    throw std::logic_error(
        "[Trainer::forward_backward] expected optimizer_step first: a step has the gradients of one batch. "
        "To "
        "accumulate those of several, give them as one batch and cut it into more microbatches "
        "(Pipeline::microbatches), whose gradients are added up");
  if (plan_.flush_every > 1)
    throw std::logic_error("[Trainer::forward_backward] expected a step for each batch, got flush_every(" +
                           std::to_string(plan_.flush_every) +
                           "), with which the batches of several steps overlap. Use fit, or flush_every(1)");
  auto& self = *world_.shared_->self;
  auto problem = detail::problem_of_training(pipeline_);
  if (problem.empty()) problem = problem_of(given, plan_.mesh.num_replicas * pipeline_.microbatches());
  if (!problem.empty()) detail::refuse_call(self, actors::job::call_kind::forward_backward, runs_, problem);
  if (!given_) {
    given_ = std::make_shared<detail::given_batches>();
    given_source_ = self.add_source(given_);
  }
  given_->put(runs_, given);
  if (given_->size_bytes() > many_bytes && !std::exchange(warned_of_batches_, true))
    world_.shared_->log->warn(
        "forward_backward keeps {} MiB of batches, which a recovery may need until a later state is safe: "
        "copy the state more often (--snapshot-every, --snapshot-interval)",
        given_->size_bytes() >> 20);
  actors::job::call_request request;
  request.kind = actors::job::call_kind::forward_backward;
  request.source = given_source_;
  request.target_step = runs_ + 1;
  dataset samples({given.inputs.to({}), given.targets.to({})});
  request.data = detail::describe_samples(samples);
  if (reads_samples_) request.content = detail::describe_content(samples);
  // Open too when a callback throws: the step is begun. A job that has failed has none, and says why.
  is_step_open_ = true;
  try {
    auto result = self.run(request, observer_of(callbacks_, world_.shared_->running));
    given_->release_before(result.replays_from);
    return result.metrics.mean_loss();
  } catch (const job_failed&) {
    is_step_open_ = false;
    throw;
  } catch (const bad_input&) {
    is_step_open_ = false;
    throw;
  }
}

std::uint64_t Trainer::optimizer_step() {
  detail::running_call::scope running(world_.shared_->running, "Trainer::optimizer_step");
  if (!is_step_open_)
    throw std::logic_error(
        "[Trainer::optimizer_step] expected forward_backward first, which computes the gradients of a batch");
  auto& self = *world_.shared_->self;
  actors::job::call_request request;
  request.kind = actors::job::call_kind::optimizer_step;
  request.source = given_source_;
  request.target_step = ++runs_;
  is_step_open_ = false;
  auto result = self.run(request, observer_of(callbacks_, world_.shared_->running));
  note_safe_state(result.replays_from);
  given_->release_before(result.replays_from);
  return result.steps_done;
}

void Trainer::note_safe_state(std::uint64_t replays_from) {
  if (world_.rank() == 0 && replays_from > 0 && !std::exchange(safe_state_noted_, true))
    detail::record_safe_state(*world_.shared_->self, number_);
}

tensor Trainer::forward(const batch& given) {
  detail::running_call::scope running(world_.shared_->running, "Trainer::forward");
  require_no_open_step("forward");
  warn_of_own_weights("forward");
  if (auto problem = problem_of_samples("forward", given); !problem.empty())
    detail::refuse_call(*world_.shared_->self, actors::job::call_kind::predict, runs_, problem);
  auto samples = std::make_shared<dataset>(labelled_samples{given.inputs.to({}).clone()});
  return outputs_of(samples, [&](std::shared_ptr<batch_source> source) {
    if (forwarded_) {
      forwarded_->replace(std::move(source));
    } else {
      forwarded_ = std::make_shared<detail::replaceable_source>(std::move(source));
      forwarded_source_ = world_.shared_->self->add_source(forwarded_);
    }
    return forwarded_source_;
  });
}

}  // namespace troupe
