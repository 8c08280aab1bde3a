#include "troupe/data_parallel/data_parallel.hpp"

#include <stdexcept>
#include <utility>

#include "troupe/autograd/pass_id.hpp"
#include "troupe/data_parallel/detail/overlapped_optimizer.hpp"
#include "troupe/data_parallel/detail/same_models.hpp"
#include "troupe/data_parallel/sync_batch_norm.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/gradients/replica_sum.hpp"
#include "troupe/tensor/captured_step.hpp"

namespace troupe {
namespace {

constexpr call_options by_waiter{.progress = progress_by::waiter};

std::vector<named_parameter> parameters_of(nn::Module& model, bool are_frozen) {
  std::vector<named_parameter> result;
  for (auto& each : model.named_parameters())
    if (each.target->requires_gradient != are_frozen) result.push_back(std::move(each));
  return result;
}

std::int64_t bytes_of(double mib, const char* option) {
  if (!(mib >= 0)) throw_invalid("DataParallel", std::string(option) + " >= 0", std::to_string(mib));
  return static_cast<std::int64_t>(mib * (1 << 20));
}

std::string in_words(const data_parallel_options& options) {
  return "bucket_size_mb " + std::to_string(options.bucket_size_mb) + ", first_bucket_mb " +
         std::to_string(options.first_bucket_mb) + ", num_replicas " + std::to_string(options.num_replicas) +
         ", broadcast_buffers " + std::to_string(options.broadcast_buffers) + ", find_unused_parameters " +
         std::to_string(options.find_unused_parameters);
}

data_parallel_options checked(data_parallel_options options, nn::Module& model, communicator& group) {
  if (options.num_replicas < 0)
    throw_invalid("DataParallel", "num_replicas >= 1, or 0 for one on each member",
                  std::to_string(options.num_replicas));
  if (options.num_replicas == 0) options.num_replicas = group.size();
  for (const auto& each : model.named_parameters())
    if (!each.target->value().defined())
      throw_invalid("DataParallel", "a materialized model", each.name + " without memory");
  using statistics_of = nn::BatchNorm2d::statistics_of;
  if (has_statistics_of(model, statistics_of::replicas) && options.num_replicas > 1)
    throw_invalid(
        "DataParallel",
        "a SyncBatchNorm over a group: convert_sync_batch_norm(model, group) with a group of its own",
        "one over the replicas of a pipeline");
  if (options.num_replicas != group.size() && has_statistics_of(model, statistics_of::group))
    throw_invalid("DataParallel",
                  "one virtual replica for each of the " + std::to_string(group.size()) +
                      " members with SyncBatchNorm, whose replicas run at the same time: leave num_replicas "
                      "at 0, or use BatchNorm",
                  "num_replicas " + std::to_string(options.num_replicas));
  detail::require_same_models("DataParallel", model, in_words(options), group);
  return options;
}

gradient_reducer_options reducer_options(const data_parallel_options& options, const communicator& group) {
  return {.buckets = {bytes_of(options.first_bucket_mb, "first_bucket_mb"),
                      bytes_of(options.bucket_size_mb, "bucket_size_mb")},
          .replicas = gradients::spread_replicas(options.num_replicas, group.size()),
          .gradient_as_bucket_view = options.gradient_as_bucket_view,
          .find_unused_parameters = options.find_unused_parameters};
}

}  // namespace

DataParallel::DataParallel(nn::Module& model, communicator& group, const data_parallel_options& options)
    : DataParallel(model, std::shared_ptr<communicator>(std::shared_ptr<void>(), &group), options) {}

DataParallel::DataParallel(nn::Module& model, std::shared_ptr<communicator> group,
                           const data_parallel_options& options)
    : model_(model),
      kept_group_(std::move(group)),
      group_(*kept_group_),
      options_(checked(options, model, group_)),
      reducer_(std::make_shared<gradient_reducer>(parameters_of(model, false), group_,
                                                  reducer_options(options_, group_))),
      frozen_(parameters_of(model, true)),
      buffers_(model, static_cast<int>(own_replicas().size())) {
  sync_parameters();
}

DataParallel::~DataParallel() {
  try {
    reducer_->finish();
  } catch (...) {  // the group keeps the failure and throws it at its next use
  }
}

std::unique_ptr<optim::optimizer_state> DataParallel::make_optimizer(const optim::Optimizer& optimizer) {
  return std::make_unique<detail::overlapped_optimizer>(reducer_, model_.named_parameters(), optimizer);
}

void DataParallel::sync_parameters() {
  refuse_in_capture("DataParallel::sync_parameters");
  std::vector<work> sent;
  for (const auto& each : model_.named_parameters()) {
    each.target->wait_ready();
    sent.push_back(group_.broadcast(each.target->value(), 0, by_waiter));
    each.target->mark_changed();
  }
  for (auto& each : sent) each.wait();
  buffers_.broadcast(group_);
}

int DataParallel::current_replica() const {
  if (own_replicas().empty())
    throw std::logic_error(
        "[DataParallel] expected passes on members with virtual replicas, got one on rank " +
        to_string(group_.group().rank_of(group_.rank())) + ", which has none of the " +
        std::to_string(num_replicas()) + ": call sync_gradients() once a step where own_replicas() is empty");
  return own_replicas()[static_cast<std::size_t>(reducer_->local_replica())];
}

/// Before the first training pass of a step.
void DataParallel::share_buffers() {
  if (model_.is_training() && options_.broadcast_buffers && !std::exchange(buffers_are_shared_, true))
    buffers_.broadcast(group_);
}

variable DataParallel::forward(const variable& input) {
  refuse_in_capture("DataParallel::forward");
  if (!model_.is_training() && own_replicas().empty()) return model_.forward(input);
  auto replica = current_replica();
  buffers_.use(reducer_->local_replica());
  share_buffers();
  if (current_pass().is_set) return model_.forward(input);
  auto microbatch =
      num_passes_ * static_cast<std::uint32_t>(num_replicas()) + static_cast<std::uint32_t>(replica);
  pass_scope here(pass_id{static_cast<std::uint32_t>(step_), microbatch});
  return model_.forward(input);
}

tensor DataParallel::initial_gradient() const {
  return tensor::full({}, 1.0F / static_cast<float>(num_replicas()));
}

/// Discards gradients of the previous step, even if no optimizer has used them.
void DataParallel::begin_step() {
  reducer_->finish();
  reducer_->forget_sums();
  for (auto* each : model_.parameters()) each->has_gradient = false;
}

void DataParallel::backward(const variable& loss) {
  refuse_in_capture("DataParallel::backward");
  current_replica();  // refuses members without replicas
  if (loss.value.num_elements() != 1)
    throw_invalid("DataParallel::backward", "a scalar, the mean loss of this replica", describe(loss.value));
  if (reducer_->local_replica() == 0 && num_passes_ == 0) begin_step();
  ++num_passes_;
  auto gradient = initial_gradient().reshape(loss.value.shape()).to(loss.value.device());
  if (num_no_sync_ > 0) return loss.backward(gradient);
  loss.backward(gradient, {.on_gradient = [this](parameter& param) { reducer_->on_gradient(param); },
                           .on_rows = [this](parameter& param,
                                             std::int64_t count) { reducer_->on_rows(param, count); }});
  end_replica();
}

void DataParallel::sync_gradients() {
  refuse_in_capture("DataParallel::sync_gradients");
  if (num_no_sync_ > 0)
    throw std::logic_error(
        "[DataParallel::sync_gradients] expected a call outside of no_sync(), got one within");
  if (own_replicas().empty()) {
    begin_step();
    share_buffers();
  }
  end_replica();
}

/// Throws if a frozen parameter has a gradient: it is not reduced and would differ between members.
void DataParallel::require_frozen() {
  for (const auto& each : frozen_) {
    if (!each.target->has_gradient) continue;
    group_.abort(each.name + " got a gradient, and was frozen when its model was wrapped");
    throw std::logic_error(
        "[DataParallel] expected " + each.name +
        " to stay frozen, as it was when its model was wrapped, got a gradient for it: wrap the "
        "model again after unfreezing");
  }
}

void DataParallel::end_replica() {
  require_frozen();
  num_passes_ = 0;
  auto is_last = reducer_->end_replica();
  buffers_.use(reducer_->local_replica());
  if (!is_last) return;
  buffers_are_shared_ = false;
  ++step_;
}

void DataParallel::register_comm_hook(std::shared_ptr<comm_hook> hook) { reducer_->use(std::move(hook)); }

std::vector<named_tensor> DataParallel::state() const {
  auto result = buffers_.state(own_replicas());
  for (auto& each : reducer_->hook_state()) result.push_back(std::move(each));
  return result;
}

}  // namespace troupe
