#include "troupe/fsdp/detail/flat_gradients.hpp"

#include <algorithm>

#include "troupe/ops/elementwise.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::detail {

flat_gradients::flat_gradients(flat_parameters& of, const sharding_groups& groups,
                               const collective::logical_rank_map& replicas, shared_blocks& blocks,
                               bool keeps_memory)
    : of_(of),
      groups_(groups),
      replicas_(replicas),
      blocks_(blocks),
      keeps_memory_(keeps_memory),
      here_(gradients::summed_by_member(replicas, *groups.shards)) {}

/// Of a member with several replicas the partial sums stay between their passes.
const tensor& flat_gradients::leaf(int replica) {
  if (leaf_.defined()) return leaf_;
  auto num_leaves = here_.logical_ranks.leaves_of(here_.member).size();
  memory_scope counted(memory_category::gradients);
  if (num_leaves == 1) {
    leaf_ = keeps_memory_ ? groups_.shards->allocate({of_.num_elements()})
                          : blocks_.take(of_.num_elements(), memory_category::gradients);
    return leaf_;
  }
  if (!nodes_sums_) {
    auto num_nodes = static_cast<std::int64_t>(here_.logical_ranks.nodes_of(here_.member).size());
    nodes_ = groups_.shards->allocate({num_nodes, of_.num_elements()});
    nodes_sums_.emplace(here_.logical_ranks, here_.member, of_.num_elements(), nodes_,
                        [](tensor& left, const tensor& right) { axpy(1, right, left); });
  }
  leaf_ = nodes_sums_->place_of(static_cast<std::size_t>(replica));
  return leaf_;
}

tensor flat_gradients::gradient_of(std::size_t index, int replica) {
  return of_.view_of(leaf(replica), index);
}

void flat_gradients::add(int replica) {
  for (const auto& each : of_.parameters()) each.target->detach_gradient();
  if (!nodes_sums_) return;
  auto at = static_cast<std::size_t>(replica);
  if (at == 0) nodes_sums_->restart();
  nodes_sums_->add(here_.logical_ranks.leaves_of(here_.member).at(at), leaf_);
  leaf_ = {};
}

void flat_gradients::begin_sum() {
  if (!sum_.defined() || sum_.num_elements() != of_.num_own()) {
    memory_scope counted(memory_category::gradients);
    auto count = of_.num_own();
    sum_ = tensor::empty({std::max(count, std::int64_t{1})}, dtype::f32, groups_.shards->device())
               .rows(0, count);
  }
  phase_ = phase::over_shards;
  auto nodes = nodes_sums_ ? nodes_ : leaf_.reshape({1, of_.num_elements()});
  auto first = nodes.rows(0, 1).reshape({of_.num_elements()});
  if (is_tree_of_members())
    call_ = groups_.shards->reduce_scatter(first, sum_, of_.parts());
  else
    call_ = groups_.shards->all_reduce_leaves(nodes, first, replicas_);
}

/// Whether members have one node each, of equal height: a tree over members is then the tree over replicas.
bool flat_gradients::is_tree_of_members() const {
  return !groups_.shards->has_fixed_tree() || replicas_.is_tree_of_members();
}

void flat_gradients::go_on() {
  if (phase_ != phase::over_shards) return;
  call_.wait();
  if (!is_tree_of_members()) sum_.copy_from(of_.own_part(nodes_.rows(0, 1).reshape({of_.num_elements()})));
  if (!keeps_memory_ && !nodes_sums_) leaf_ = {};
  call_ = groups_.copies ? groups_.copies->all_reduce(sum_) : work();
  phase_ = phase::over_copies;
}

void flat_gradients::finish_sum() {
  go_on();
  if (phase_ != phase::over_copies) return;
  call_.wait();
  call_ = {};
  phase_ = phase::idle;
  of_.attach_gradients(sum_);
}

}  // namespace troupe::detail
