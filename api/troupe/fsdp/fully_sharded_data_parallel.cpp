#include "troupe/fsdp/fully_sharded_data_parallel.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "troupe/autograd/grad_mode.hpp"
#include "troupe/autograd/pass_id.hpp"
#include "troupe/data_parallel/detail/gathered_parts.hpp"
#include "troupe/data_parallel/detail/same_models.hpp"
#include "troupe/data_parallel/sync_batch_norm.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/fsdp/detail/checked_options.hpp"
#include "troupe/fsdp/detail/sharded_model.hpp"
#include "troupe/fsdp/detail/sharded_optimizer.hpp"
#include "troupe/fsdp/detail/state/whole_state.hpp"
#include "troupe/gradients/replica_sum.hpp"
#include "troupe/nn/detail/batch_counts.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/optim/detail/gradient_norm.hpp"
#include "troupe/tensor/captured_step.hpp"

namespace troupe {
namespace {

constexpr const char* self = "FullyShardedDataParallel";

std::string in_words(const fully_sharded_options& options) {
  std::string units;
  for (const auto& each : options.units) units += " " + each;
  return "strategy " + std::string(to_string(options.strategy)) + ", units" + units + ", unit_size_mb " +
         std::to_string(options.unit_size_mb) + ", reshard_after_forward " +
         std::to_string(options.reshard_after_forward) + ", gather_ahead " +
         std::to_string(options.gather_ahead) + ", num_replicas " + std::to_string(options.num_replicas) +
         ", broadcast_buffers " + std::to_string(options.broadcast_buffers) + ", find_unused_parameters " +
         std::to_string(options.find_unused_parameters) + ", seed " +
         (options.seed ? std::to_string(*options.seed) : "none");
}

void require_materialized(nn::Module& model, const fully_sharded_options& options) {
  for (const auto& each : model.named_parameters()) {
    if (options.seed && each.target->value().defined())
      throw_invalid(self, "a model that is only described with options.seed",
                    each.name + " with values: leave out the seed, or wrap before materialize");
    if (!options.seed && !each.target->value().defined())
      throw_invalid(self, "a materialized model, or options.seed", each.name + " without memory");
  }
}

void require_statistics(nn::Module& model, int num_replicas, int num_members) {
  using statistics_of = nn::BatchNorm2d::statistics_of;
  if (num_replicas > 1 && has_statistics_of(model, statistics_of::replicas))
    throw_invalid(
        self, "a SyncBatchNorm over a group: convert_sync_batch_norm(model, group) with a group of its own",
        "one over the replicas of a pipeline");
  if (num_replicas != num_members && has_statistics_of(model, statistics_of::group))
    throw_invalid(self,
                  "one virtual replica for each of the " + std::to_string(num_members) +
                      " members with SyncBatchNorm, whose replicas run at the same time: leave num_replicas "
                      "at 0, or use BatchNorm",
                  "num_replicas " + std::to_string(num_replicas));
}

fully_sharded_options checked(fully_sharded_options options, nn::Module& model,
                              const detail::sharding_groups& groups) {
  detail::require_in_range(options, groups.num_members());
  if (options.num_replicas == 0) options.num_replicas = groups.num_members();
  for (const auto& group : {groups.shards, groups.copies})
    if (group) try {
        detail::require_same_models(self, model, in_words(options), *group);
      } catch (const std::invalid_argument& problem) {
        groups.abort(problem.what());  // members of other divisions wait for this one
        throw;
      }
  require_materialized(model, options);
  require_statistics(model, options.num_replicas, groups.num_members());
  return options;
}

std::shared_ptr<detail::sharded_model> make_sharded(nn::Module& model, detail::sharding_groups groups,
                                                    const fully_sharded_options& options) {
  auto replicas = gradients::spread_replicas(
      options.num_replicas * groups.shards->size() / groups.num_members(), groups.shards->size());
  detail::sharded_model_options chosen{
      .values = {.frees_values = options.strategy == shard_strategy::full,
                 .frees_after_forward = options.reshard_after_forward,
                 .num_gathered_ahead = static_cast<std::size_t>(options.gather_ahead)},
      .keeps_gradient_memory = options.strategy == shard_strategy::optimizer,
      .finds_unused = options.find_unused_parameters,
      .replicas = std::move(replicas)};
  return std::make_shared<detail::sharded_model>(
      model, detail::divide_into_units(model, options.units, detail::elements_of_a_unit(options)),
      std::move(groups), chosen, options.seed);
}

}  // namespace

FullyShardedDataParallel::FullyShardedDataParallel(nn::Module& model, communicator& group,
                                                   const fully_sharded_options& options)
    : FullyShardedDataParallel(model, std::shared_ptr<communicator>(std::shared_ptr<void>(), &group),
                               options) {}

FullyShardedDataParallel::FullyShardedDataParallel(nn::Module& model, std::shared_ptr<communicator> group,
                                                   const fully_sharded_options& options)
    : FullyShardedDataParallel(model, std::move(group), nullptr, options) {}

FullyShardedDataParallel::FullyShardedDataParallel(nn::Module& model, std::shared_ptr<communicator> shards,
                                                   std::shared_ptr<communicator> copies,
                                                   const fully_sharded_options& options)
    : model_(model),
      kept_group_(std::move(shards)),
      copies_(std::move(copies)),
      group_(*kept_group_),
      options_(checked(options, model, {kept_group_, copies_})),
      sharded_(make_sharded(model, {kept_group_, copies_}, options_)),
      own_replicas_(sharded_->replicas().leaves_of(group_.rank())),
      buffers_(model, static_cast<int>(own_replicas_.size())) {
  for (auto& each : own_replicas_) each += sharded_->groups().division() * sharded_->replicas().num_leaves();
  broadcast_buffers();
}

FullyShardedDataParallel::~FullyShardedDataParallel() = default;

int FullyShardedDataParallel::num_replicas() const { return options_.num_replicas; }

int FullyShardedDataParallel::current_replica() const {
  return own_replicas()[static_cast<std::size_t>(sharded_->gradients().local_replica())];
}

std::unique_ptr<optim::optimizer_state> FullyShardedDataParallel::make_optimizer(
    const optim::Optimizer& optimizer) {
  return std::make_unique<detail::sharded_optimizer>(sharded_, optimizer);
}

/// Before the first training pass of a step.
void FullyShardedDataParallel::share_buffers() {
  if (model_.is_training() && options_.broadcast_buffers && !std::exchange(buffers_are_shared_, true))
    broadcast_buffers();
}

void FullyShardedDataParallel::broadcast_buffers() {
  buffers_.broadcast(group_);
  if (copies_) buffers_.broadcast(*copies_);
}

variable FullyShardedDataParallel::forward(const variable& input) {
  refuse_in_capture("FullyShardedDataParallel::forward");
  auto replica = current_replica();
  buffers_.use(sharded_->gradients().local_replica());
  share_buffers();
  detail::running_pass running(
      sharded_->values(), is_grad_enabled() ? detail::model_pass::forward : detail::model_pass::evaluation);
  auto microbatch =
      num_passes_ * static_cast<std::uint32_t>(num_replicas()) + static_cast<std::uint32_t>(replica);
  auto outer = current_pass();
  pass_scope here(outer.is_set
                      ? outer
                      : pass_state{.id = {static_cast<std::uint32_t>(step_), microbatch}, .is_set = true});
  auto output = model_.forward(input);
  running.end();
  return output;
}

void FullyShardedDataParallel::backward(const variable& loss) {
  refuse_in_capture("FullyShardedDataParallel::backward");
  if (loss.value.num_elements() != 1)
    throw_invalid("FullyShardedDataParallel::backward", "a scalar, the mean loss of this replica",
                  describe(loss.value));
  auto& gradients = sharded_->gradients();
  if (gradients.local_replica() == 0 && num_passes_ == 0) gradients.begin_step();
  ++num_passes_;
  auto first =
      tensor::full(loss.value.shape(), 1.0F / static_cast<float>(num_replicas())).to(loss.value.device());
  detail::running_pass running(sharded_->values(), detail::model_pass::backward);
  if (num_no_sync_ > 0) {
    loss.backward(first);
  } else {
    // By rows as DataParallel does, whose bits these are.
    loss.backward(first, {.on_gradient = [&gradients](parameter& param) { gradients.on_gradient(param); },
                          .on_rows = [](parameter&, std::int64_t) {}});
  }
  running.end();
  if (num_no_sync_ == 0) end_replica();
}

/// Throws if a frozen parameter has a gradient: it is not summed and would differ between members.
void FullyShardedDataParallel::require_frozen() {
  for (const auto* flat : sharded_->frozen_flats())
    for (const auto& [name, target] : flat->parameters()) {
      if (!target->has_gradient) continue;
      sharded_->groups().abort(name + " got a gradient, and was frozen when its model was wrapped");
      throw std::logic_error("[FullyShardedDataParallel] expected " + name +
                             " to stay frozen, as it was when its model was wrapped, got a gradient for it: "
                             "wrap a model in which it is not");
    }
}

void FullyShardedDataParallel::end_replica() {
  require_frozen();
  num_passes_ = 0;
  auto is_last = sharded_->gradients().end_replica();
  buffers_.use(sharded_->gradients().local_replica());
  if (!is_last) return;
  sharded_->begin_order_check();
  buffers_are_shared_ = false;
  ++step_;
}

double FullyShardedDataParallel::clip_grad_norm(double max_norm) {
  auto& gradients = sharded_->gradients();
  gradients.finish();
  std::map<const parameter*, std::int64_t> index_of;
  for (const auto* each : model_.parameters()) index_of.emplace(each, std::ssize(index_of));
  std::vector<optim::detail::indexed_parameter> counted;
  std::vector<tensor> own;
  for (std::size_t i = 0; i < gradients.num_flats(); ++i) {
    const auto& flat = gradients.flat(i);
    for (std::size_t piece = 0; piece < flat.pieces().size(); ++piece) {
      const auto& place = flat.place_of(piece);
      auto* target = flat.pieces()[piece].target;
      counted.push_back({index_of.at(flat.parameters()[place.index].target), target, place.first});
      if (target->needs_step()) own.push_back(target->gradient());
    }
  }
  auto norm =
      optim::detail::combined_norm(detail::gather_parts(optim::detail::gradient_squares(counted), group_));
  auto factor = clipping_factor(norm, max_norm);
  if (factor < 1) scale_all(own, factor);
  return norm;
}

bool FullyShardedDataParallel::unscale_and_check(const optim::loss_scaler& scaler) {
  auto& gradients = sharded_->gradients();
  gradients.finish();
  std::vector<parameter*> own;
  for (std::size_t i = 0; i < gradients.num_flats(); ++i)
    for (const auto& each : gradients.flat(i).pieces()) own.push_back(each.target);
  auto flag =
      tensor::from<std::int64_t>(std::vector<std::int64_t>{scaler.unscale_and_check(own) ? 1 : 0}, {1})
          .to(group_.device());
  group_.all_reduce(flag, reduce_op::min, {.progress = progress_by::waiter}).wait();
  auto is_finite = flag.to(device{}).values<std::int64_t>()[0] == 1;
  if (!is_finite) gradients.drop();
  return is_finite;
}

std::vector<named_tensor> FullyShardedDataParallel::state_dict() {
  std::map<const parameter*, tensor> copies;
  auto& values = sharded_->values();
  for (std::size_t unit = 0; unit < sharded_->units().size(); ++unit) {
    for (const auto& flat : sharded_->units()[unit].flats)
      for (const auto& [name, target] : flat->parameters()) {
        target->wait_ready();
        copies.emplace(target, target->value().to(device{}).clone());
      }
    values.let_go();
  }
  std::vector<named_tensor> result;
  for (const auto& each : model_.named_parameters()) result.push_back({each.name, copies.at(each.target)});
  for (const auto& each : model_.named_buffers())
    result.push_back({each.name, each.target->value.to(device{}).clone()});
  return result;
}

unmatched_names FullyShardedDataParallel::load_state_dict(const std::vector<named_tensor>& saved,
                                                          copy_by_name_options options) {
  auto given = nn::detail::without_batch_counts(saved);
  std::vector<named_form> forms;
  for (const auto& each : model_.named_parameters()) forms.push_back({each.name, each.target->extents});
  std::vector<named_tensor> buffers;
  for (const auto& each : model_.named_buffers()) {
    buffers.push_back({each.name, each.target->value});
    forms.push_back({each.name, each.target->extents});
  }
  auto unmatched = compare_by_name(forms, given, options);
  copy_by_name(buffers, given, {.strict = false});
  sharded_->load(given);
  return unmatched;
}

std::vector<named_tensor> FullyShardedDataParallel::optimizer_state_dict(
    const optim::optimizer_state& optimizer) {
  return detail::gather_state(*sharded_, optimizer);
}

void FullyShardedDataParallel::load_optimizer_state(optim::optimizer_state& optimizer,
                                                    const std::vector<named_tensor>& saved) {
  detail::load_whole_state(*sharded_, optimizer, saved);
}

sharding_statistics FullyShardedDataParallel::statistics() const {
  sharding_statistics result;
  for (const auto* flat : sharded_->flats()) result.own_parameters += flat->own().bytes().size();
  result.own_gradients = sharded_->gradients().own_bytes();
  result.gathered = sharded_->values().gathered_bytes();
  result.blocks = sharded_->values().blocks().size_bytes();
  result.num_gathers = sharded_->values().num_gathers();
  return result;
}

std::vector<std::pair<std::string, std::size_t>> FullyShardedDataParallel::units() const {
  std::vector<std::pair<std::string, std::size_t>> result;
  for (const auto& unit : sharded_->units()) {
    result.emplace_back(unit.name, 0);
    for (const auto& flat : unit.flats)
      result.back().second += static_cast<std::size_t>(flat->num_elements()) * sizeof(float);
  }
  return result;
}

std::vector<named_tensor> FullyShardedDataParallel::state() const { return buffers_.state(own_replicas()); }

}  // namespace troupe
