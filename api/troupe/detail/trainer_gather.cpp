// Trainer's functions that gather tensors of all processes (state_dict, predict, save), and latest_weights.
#include <stdexcept>
#include <utility>

#include "troupe/data/detail/describe_samples.hpp"
#include "troupe/data/detail/evaluation_source.hpp"
#include "troupe/detail/gathered_results.hpp"
#include "troupe/detail/refused_call.hpp"
#include "troupe/detail/replica_weights.hpp"
#include "troupe/detail/world_state.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/job/latest_copies.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/trainer.hpp"

namespace troupe {
namespace {

/// Each slice of a stage sends its own, and of replicas that own shards each does.
std::uint64_t num_weight_parts(const plan& training, int num_shards) {
  return static_cast<std::uint64_t>(training.num_stages) *
         static_cast<std::uint64_t>(training.mesh.num_slices) * static_cast<std::uint64_t>(num_shards);
}

}  // namespace

std::vector<named_tensor> Trainer::state_dict() {
  detail::running_call::scope running(world_.shared_->running, "Trainer::state_dict");
  require_no_open_step("state_dict");
  warn_of_own_weights("state_dict");
  actors::job::call_request request;
  request.kind = actors::job::call_kind::gather;
  request.target_step = runs_;
  request.num_gathered = num_weight_parts(plan_, pipeline_.num_shards());
  std::vector<named_tensor> weights;
  actors::process::call_observer observer;
  observer.on_gathered = [&](std::vector<tensor> packed_stages) {
    weights = detail::unpack_weights(packed_stages);
    return "";
  };
  world_.shared_->self->run(request, observer);
  return weights;
}

std::optional<weights_at_step> Trainer::latest_weights() const {
  if (!latest_)
    throw std::logic_error(
        "[Trainer::latest_weights] expected a process that holds copies of all " +
        std::to_string(plan_.num_stages) + " stages" +
        (pipeline_.num_shards() == 1 ? "" : " and all shards") + ", got rank " + to_string(world_.rank()) +
        ", which holds some of them: use read_weights of the --snapshot-dir, or state_dict between two fits "
        "of fewer steps, which gathers them from all processes");
  auto newest = latest_->get();
  if (!newest) return {};
  auto step = newest->step * steps_of_run();
  auto note = detail::note_on_weights("latest_weights", pipeline_.numerics().exchange.average_every, step);
  if (!note.empty() && !warned_of_latest_->exchange(true)) world_.shared_->log->warn("{}", note);
  return weights_at_step{step, detail::weights_in(newest->packed)};
}

void Trainer::save(const std::filesystem::path& file, std::uint64_t max_file_bytes) {
  detail::running_call::scope running(world_.shared_->running, "Trainer::save");
  require_no_open_step("save");
  warn_of_own_weights("save");
  actors::job::call_request request;
  request.kind = actors::job::call_kind::gather;
  request.target_step = runs_;
  request.num_gathered = num_weight_parts(plan_, pipeline_.num_shards());
  request.receiver = 0;
  if (max_file_bytes == 0) throw bad_input("save needs files of more than 0 bytes, got 0");
  if (world_.rank() == 0)
    request.problem = detail::why_not_writable(file, detail::weights_bytes(pipeline_.model()));
  actors::process::call_observer observer;
  // Part of the call, which is complete only when the file exists.
  observer.on_gathered = [&](const std::vector<tensor>& packed_stages) -> std::string {
    try {
      auto weights = detail::unpack_weights(packed_stages);
      if (is_safetensors_index(file))
        write_sharded_safetensors(file, weights, max_file_bytes, {{"format", "pt"}});
      else
        write_safetensors(file, weights, {{"format", "pt"}});
      return {};
    } catch (const bad_input& problem) {
      return problem.what();
    }
  };
  auto result = world_.shared_->self->run(request, observer);
  if (!result.problem.empty()) throw bad_input("the weights are not saved: " + result.problem);
  if (result.from_snapshot && world_.rank() == 0 && !std::filesystem::exists(file))
    world_.shared_->log->warn(
        "save: {} is not there. The job from whose snapshot this one resumes has saved the weights of step "
        "{}, "
        "which are not in the snapshot: bring its file, or those weights are lost",
        file.string(), result.steps_done * steps_of_run());
}

tensor Trainer::predict(dataset_ptr samples) {
  detail::running_call::scope running(world_.shared_->running, "Trainer::predict");
  require_no_open_step("predict");
  warn_of_own_weights("predict");
  return outputs_of(samples, [&](std::shared_ptr<batch_source> source) {
    return sources_.number_of(samples, source_use::predict,
                              [&] { return world_.shared_->self->add_source(std::move(source)); });
  });
}

tensor Trainer::outputs_of(const dataset_ptr& samples,
                           const std::function<std::uint32_t(std::shared_ptr<batch_source>)>& number_of) {
  auto& self = *world_.shared_->self;
  std::shared_ptr<detail::evaluation_source> source;
  actors::job::call_request request;
  detail::prepare_call(self, actors::job::call_kind::predict, runs_, [&] {
    if (!samples) throw bad_input("predict needs a data set, got a null pointer");
    source = std::make_shared<detail::evaluation_source>(
        samples, world_.options().batch, pipeline_.microbatches(), detail::evaluation_part::samples);
    request.data = detail::describe_samples(*samples);
    if (reads_samples_) request.content = detail::describe_inputs(*samples);
  });
  request.kind = actors::job::call_kind::predict;
  request.target_step = runs_;
  request.num_batches = source->num_steps_per_epoch();
  request.num_microbatches = source->num_microbatches();
  request.num_gathered = request.num_batches * static_cast<std::uint64_t>(request.num_microbatches);
  request.source = number_of(source);
  tensor outputs;
  actors::process::call_observer observer;
  observer.on_gathered = [&](const std::vector<tensor>& microbatches) {
    outputs = concat(microbatches, 0);
    return "";
  };
  self.run(request, observer);
  return outputs;
}

}  // namespace troupe
