#include "troupe/data_parallel/gradient_reducer.hpp"

#include <algorithm>
#include <stdexcept>

namespace troupe {
namespace {

/// A call sums the nodes of its elements, which lie one after the other: where a member has several nodes, of
/// whole buckets only.
std::vector<planned_bucket> planned_for(const std::vector<named_parameter>& parameters,
                                        const gradient_reducer_options& options, const communicator& group) {
  auto result = plan_buckets(parameters, options.buckets);
  int most = 0;
  for (int member = 0; group.has_fixed_tree() && member < group.size(); ++member)
    most = std::max(most, static_cast<int>(options.replicas.nodes_of(member).size()));
  for (auto& each : result)
    if (most > 1) each.chunks = {{0, each.num_elements}};
  return result;
}

}  // namespace

gradient_reducer::gradient_reducer(std::vector<named_parameter> parameters, communicator& group,
                                   const gradient_reducer_options& options)
    : parameters_(std::move(parameters)),
      group_(group),
      options_(options),
      planned_(planned_for(parameters_, options_, group_)),
      buckets_(make_buckets()),
      bucket_states_(buckets_.size()),
      exchange_(planned_, buckets_, group_, [this](std::size_t bucket) { copy_sum(bucket); }) {
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
    for (std::size_t part = 0; part < buckets_[bucket].parameters().size(); ++part) {
      auto* each = buckets_[bucket].parameters()[part];
      slots_[each] = {bucket, part};
      each->set_update(exchange_.update_of(bucket));
    }
  begin_replica(0);
}

std::vector<reduced_bucket> gradient_reducer::make_buckets() {
  std::vector<reduced_bucket> made;
  for (const auto& each : planned_) made.emplace_back(each, parameters_, options_.replicas, group_);
  return made;
}

std::vector<named_parameter> gradient_reducer::parameters_of(std::size_t bucket) const {
  std::vector<named_parameter> result;
  for (auto index : planned_[bucket].parameters)
    result.push_back(parameters_[static_cast<std::size_t>(index)]);
  std::ranges::reverse(result);
  return result;
}

std::vector<optim::parameter_part> gradient_reducer::parts_in(const reduced_chunk& chunk) const {
  std::vector<optim::parameter_part> result;
  const auto& parts = planned_[chunk.bucket].parts;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto first = std::max(chunk.first - parts[i].first, std::int64_t{0});
    auto end = std::min(chunk.first + chunk.count - parts[i].first, parts[i].extents.num_elements());
    if (first < end) result.push_back({parts.size() - 1 - i, first, end - first});
  }
  return result;
}

void gradient_reducer::use(std::shared_ptr<comm_hook> hook) {
  if (local_replica_ != 0)
    throw std::logic_error("[register_comm_hook] expected a call between steps, got one within");
  finish();
  hook_ = std::move(hook);
  auto storage =
      hook_ ? reduced_bucket::leaf_storage::all_leaves : reduced_bucket::leaf_storage::partial_sums;
  for (auto& each : buckets_) each.set_leaf_storage(storage);
  make_hooked_buckets();
  if (hook_) hook_->prepare(hooked_buckets_);
}

void gradient_reducer::make_hooked_buckets() {
  hooked_buckets_.clear();
  if (!hook_) return;
  auto replicas = std::make_shared<const collective::logical_rank_map>(options_.replicas);
  for (const auto& each : buckets_) {
    gradient_bucket added{
        static_cast<int>(hooked_buckets_.size()), each.parts(), {}, each.sum(), own_replicas(), replicas};
    for (int i = 0; i < num_own(); ++i) added.leaves.push_back(each.leaf(i));
    hooked_buckets_.push_back(std::move(added));
  }
}

std::vector<named_tensor> gradient_reducer::hook_state() const {
  return hook_ ? hook_->state() : std::vector<named_tensor>{};
}

/// From now on gradients are written to the leaf of this replica.
void gradient_reducer::begin_replica(int local_replica) {
  local_replica_ = local_replica;
  complete_.clear();
  num_ready_.clear();
  num_complete_buckets_ = 0;
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const auto& bucket = buckets_[i];
    bucket_states_[i].num_missing = bucket.parameters().size();
    auto leaf = bucket.leaf(local_replica);
    for (std::size_t part = 0; options_.gradient_as_bucket_view && part < bucket.parts().size(); ++part)
      bucket.parameters()[part]->gradient_in_update() = bucket.part_of(leaf, part);
  }
}

void gradient_reducer::on_gradient(parameter& param) {
  if (!slots_.contains(&param)) return;
  mark_ready_early(param, param.extents.num_elements());
  mark_complete(param);
}

void gradient_reducer::on_rows(parameter& param, std::int64_t count) {
  if (!slots_.contains(&param)) return;
  mark_ready_early(param, param.extents.num_elements() / param.extents[0] * count);
}

/// Marks gradient elements ready before their bucket is complete; possible only if the gradient is a view of
/// the only leaf.
void gradient_reducer::mark_ready_early(const parameter& param, std::int64_t num_elements) {
  if (hook_ || num_own() > 1 || !options_.gradient_as_bucket_view) return;
  mark_ready(slots_.at(&param), num_elements);
}

void gradient_reducer::mark_complete(const parameter& param) {
  if (!complete_.insert(&param).second) return;
  --bucket_states_[slots_.at(&param).bucket].num_missing;
  while (num_complete_buckets_ < buckets_.size() && bucket_states_[num_complete_buckets_].num_missing == 0)
    complete(num_complete_buckets_++);
}

void gradient_reducer::complete(std::size_t index) {
  auto& bucket = buckets_[index];
  auto leaf = bucket.leaf(local_replica_);
  for (std::size_t part = 0; !options_.gradient_as_bucket_view && part < bucket.parts().size(); ++part)
    bucket.part_of(leaf, part).copy_from(bucket.parameters()[part]->gradient());
  bucket.add_leaf(local_replica_);
  if (local_replica_ + 1 == num_own()) hook_ ? send_hooked(index) : send(index);
}

/// Such a member uses every parameter, unless the others tell that they do not.
void gradient_reducer::send_without_replicas() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) hook_ ? send_hooked(i) : send(i);
  if (options_.find_unused_parameters) return;
  for (const auto& each : parameters_) used_.insert(each.target);
}

void gradient_reducer::send(std::size_t index) {
  const auto& parts = buckets_[index].parts();
  for (std::size_t part = 0; part < parts.size(); ++part)
    mark_ready({index, part}, parts[part].extents.num_elements());
}

/// Marks the first `num_elements` of a gradient ready, except those marked before.
void gradient_reducer::mark_ready(const bucket_slot& slot, std::int64_t num_elements) {
  const auto& bucket = buckets_[slot.bucket];
  auto& num_ready = num_ready_[bucket.parameters()[slot.part]];
  exchange_.mark_ready(slot.bucket, bucket.parts()[slot.part].first + num_ready, num_elements - num_ready);
  num_ready = num_elements;
}

void gradient_reducer::send_hooked(std::size_t index) {
  bucket_states_[index].hooked = hook_->begin(hooked_buckets_[index], group_);
  for (std::size_t before = 0; before < index; ++before)
    if (auto& earlier = bucket_states_[before].hooked; earlier && !earlier->proceed()) earlier.reset();
}

bool gradient_reducer::end_replica() {
  num_own() > 0 ? mark_unused_ready() : send_without_replicas();
  for (const auto& each : parameters_) {
    if (each.target->has_gradient) used_.insert(each.target);
    each.target->has_gradient = false;
  }
  if (local_replica_ + 1 < num_own()) {
    begin_replica(local_replica_ + 1);
    return false;
  }
  end_step();
  return true;
}

/// Treats missing gradients as zeros, or as an error without find_unused_parameters.
void gradient_reducer::mark_unused_ready() {
  std::vector<std::string> unused;
  for (const auto& each : parameters_)
    if (!complete_.contains(each.target) && !each.target->has_gradient) unused.push_back(each.name);
  if (!unused.empty() && !options_.find_unused_parameters) abort_step(unused);
  for (const auto& each : parameters_) {
    if (complete_.contains(each.target)) continue;
    if (!each.target->has_gradient) {
      each.target->wait_ready();
      each.target->gradient().fill_zero();
    }
    mark_complete(*each.target);
  }
}

void gradient_reducer::abort_step(const std::vector<std::string>& unused) {
  std::string names, frozen;
  for (const auto& name : unused) names += (names.empty() ? "" : ", ") + name;
  for (const auto& each : parameters_)
    if (!each.target->requires_gradient && frozen.empty())
      frozen = ". " + each.name +
               " was frozen after its model was wrapped: wrap the model again, or unfreeze "
               "it before its forward pass";
  group_.abort("its backward pass brought no gradient for " + names);
  throw std::logic_error(
      "[DataParallel] expected a gradient for every parameter from the backward pass, got none for " + names +
      " on rank " + to_string(group_.group().rank_of(group_.rank())) +
      "; freeze what is never used before the model is wrapped, or set find_unused_parameters" + frozen);
}

void gradient_reducer::end_step() {
  if (hook_)
    receive_hooked();
  else
    exchange_.end_step();
  begin_replica(0);
  if (options_.find_unused_parameters) {
    finish();
    all_reduce_used();
  }
  for (const auto& each : parameters_) each.target->has_gradient = used_.contains(each.target);
  used_.clear();
  has_sums_ = true;
}

void gradient_reducer::receive_hooked() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    auto& sent = bucket_states_[i];
    while (sent.hooked && sent.hooked->proceed()) {
    }
    sent.hooked.reset();
    copy_sum(i);
  }
}

void gradient_reducer::copy_sum(std::size_t index) {
  const auto& bucket = buckets_[index];
  for (std::size_t part = 0; !options_.gradient_as_bucket_view && part < bucket.parts().size(); ++part)
    bucket.parameters()[part]->gradient().copy_from(bucket.part_of(bucket.sum(), part));
}

/// Finds the parameters that at least one replica of any member used.
void gradient_reducer::all_reduce_used() {
  auto flags = tensor::zeros({static_cast<std::int64_t>(parameters_.size())}, dtype::u8);
  auto values = flags.values<std::uint8_t>();
  for (std::size_t i = 0; i < parameters_.size(); ++i) values[i] = used_.contains(parameters_[i].target);
  auto of_all = flags.to(group_.device());
  group_.all_reduce(of_all, reduce_op::max, {.progress = progress_by::waiter}).wait();
  of_all = of_all.to(device{});
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (of_all.values<std::uint8_t>()[i]) used_.insert(parameters_[i].target);
}

}  // namespace troupe
