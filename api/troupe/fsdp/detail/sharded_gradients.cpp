#include "troupe/fsdp/detail/sharded_gradients.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace troupe::detail {

sharded_gradients::sharded_gradients(const std::vector<flat_parameters*>& flats,
                                     const sharding_groups& groups,
                                     const collective::logical_rank_map& replicas, shared_blocks& blocks,
                                     call_order& order, bool keeps_memory, bool finds_unused)
    : groups_(groups),
      replicas_(replicas),
      calls_(order),
      finds_unused_(finds_unused),
      num_missing_(flats.size()) {
  for (std::size_t flat = 0; flat < flats.size(); ++flat) {
    all_.push_back(std::make_unique<flat_gradients>(*flats[flat], groups, replicas, blocks, keeps_memory));
    const auto& parameters = flats[flat]->parameters();
    num_missing_[flat] = parameters.size();
    for (std::size_t index = 0; index < parameters.size(); ++index) {
      auto* each = parameters[index].target;
      places_[each] = {flat, index};
      each->gradient_source = [this, flat, index](const shape&) {
        if (has_sums_)
          throw std::logic_error(
              "[FullyShardedDataParallel] expected the optimizer's step, or its zero_grad(), after the "
              "wrapper's backward pass, got another backward pass to the same parameters");
        return all_[flat]->gradient_of(index, local_replica_);
      };
    }
  }
}

sharded_gradients::~sharded_gradients() {
  try {
    finish();
  } catch (...) {  // the group keeps the failure and throws it at its next use
  }
  for (const auto& each : all_)
    for (const auto& one : each->of().parameters()) one.target->gradient_source = nullptr;
}

void sharded_gradients::begin_step() {
  finish();
  drop();
  order_.clear();
}

void sharded_gradients::drop() {
  has_sums_ = false;
  for (const auto& each : all_) {
    for (const auto& one : each->of().parameters()) one.target->has_gradient = false;
    for (const auto& one : each->of().pieces()) one.target->has_gradient = false;
  }
}

void sharded_gradients::on_gradient(parameter& param) {
  auto found = places_.find(&param);
  if (found == places_.end() || !complete_.insert(&param).second) return;
  auto flat = found->second.flat;
  if (--num_missing_[flat] == 0) complete(flat);
}

/// All gradients of a flat are there, of the current replica.
void sharded_gradients::complete(std::size_t flat) {
  auto& gradients = *all_[flat];
  for (const auto& each : gradients.of().parameters()) {
    if (each.target->has_gradient) used_.insert(each.target);
    each.target->has_gradient = false;
  }
  gradients.add(local_replica_);
  if (local_replica_ + 1 < num_own()) return;
  constexpr std::size_t most_on_their_way = most_whole_gradients - 1;
  if (order_.size() >= most_on_their_way) all_[order_[order_.size() - most_on_their_way]]->go_on();
  calls_.note_sum(flat);
  gradients.begin_sum();
  order_.push_back(flat);
}

bool sharded_gradients::end_replica() {
  require_gradients();
  mark_unused();
  complete_.clear();
  for (std::size_t flat = 0; flat < all_.size(); ++flat)
    num_missing_[flat] = all_[flat]->of().parameters().size();
  if (++local_replica_ < num_own()) return false;
  local_replica_ = 0;
  if (finds_unused_) all_reduce_used();
  for (const auto& [each, place] : places_)
    all_[place.flat]->of().parameters()[place.index].target->has_gradient = used_.contains(each);
  used_.clear();
  has_sums_ = true;
  return true;
}

void sharded_gradients::require_gradients() {
  if (finds_unused_) return;
  std::string names;
  for (const auto& each : all_)
    for (const auto& [name, target] : each->of().parameters())
      if (!complete_.contains(target) && !target->has_gradient) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) return;
  groups_.abort("its backward pass brought no gradient for " + names);
  throw std::logic_error(
      "[FullyShardedDataParallel] expected a gradient for every parameter from the backward pass, got none "
      "for " +
      names + " on rank " + to_string(groups_.shards->group().rank_of(groups_.shards->rank())) +
      "; freeze what is never used before the model is wrapped, or set find_unused_parameters");
}

/// What is missing counts as zeros.
void sharded_gradients::mark_unused() {
  for (auto flat = all_.size(); flat-- > 0;)
    for (const auto& each : all_[flat]->of().parameters()) {
      if (complete_.contains(each.target)) continue;
      if (!each.target->has_gradient) each.target->attached_gradient().fill_zero();
      on_gradient(*each.target);
    }
}

/// Finds the parameters that at least one replica of any member used.
void sharded_gradients::all_reduce_used() {
  std::vector<const parameter*> in_order;
  for (const auto& each : all_)
    for (const auto& one : each->of().parameters()) in_order.push_back(one.target);
  auto flags = tensor::zeros({std::ssize(in_order)}, dtype::u8);
  for (std::size_t i = 0; i < in_order.size(); ++i)
    flags.values<std::uint8_t>()[i] = used_.contains(in_order[i]);
  auto of_all = flags.to(groups_.shards->device());
  for (const auto& group : {groups_.shards, groups_.copies})
    if (group) group->all_reduce(of_all, reduce_op::max, {.progress = progress_by::waiter}).wait();
  of_all = of_all.to(device{});
  for (std::size_t i = 0; i < in_order.size(); ++i)
    if (of_all.values<std::uint8_t>()[i]) used_.insert(in_order[i]);
}

std::size_t sharded_gradients::own_bytes() const {
  std::size_t sum = 0;
  for (const auto& each : all_) sum += each->sum().bytes().size();
  return sum;
}

void sharded_gradients::finish(std::size_t flat) {
  all_[flat]->finish_sum();
  auto& of = all_[flat]->of();
  for (std::size_t piece = 0; piece < of.pieces().size(); ++piece) {
    const auto& whole = *of.parameters()[of.place_of(piece).index].target;
    auto& own = *of.pieces()[piece].target;
    own.has_gradient = has_sums_ && whole.has_gradient;
    own.requires_gradient = whole.requires_gradient;
  }
}

void sharded_gradients::finish() {
  for (auto flat : order_) finish(flat);
}

}  // namespace troupe::detail
