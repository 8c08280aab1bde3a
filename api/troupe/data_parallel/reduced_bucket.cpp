#include "troupe/data_parallel/reduced_bucket.hpp"

#include <algorithm>

#include "troupe/error/errors.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe {

reduced_bucket::reduced_bucket(const planned_bucket& planned, const std::vector<named_parameter>& parameters,
                               const collective::logical_rank_map& replicas, communicator& group)
    : parts_(planned.parts),
      replicas_(replicas),
      group_(group),
      here_(gradients::summed_by_member(replicas, group)) {
  memory_scope counted(memory_category::gradients);
  auto num_nodes = static_cast<std::int64_t>(here_.logical_ranks.nodes_of(here_.member).size());
  nodes_ = group.allocate({std::max(num_nodes, std::int64_t{1}), planned.num_elements}, dtype::f32);
  sum_ = nodes_.rows(0, 1).reshape({planned.num_elements});
  for (auto index : planned.parameters) {
    const auto& each = parameters[static_cast<std::size_t>(index)];
    if (each.target->value().device() != sum().device())
      throw_invalid("DataParallel",
                    each.name + " on the device of the group's backend " + std::string(group.backend()) +
                        ", " + describe(sum()),
                    describe(each.target->value()));
    parameters_.push_back(each.target);
  }
  set_leaf_storage(leaf_storage::partial_sums);
}

void reduced_bucket::set_leaf_storage(leaf_storage storage) {
  memory_scope counted(memory_category::gradients);
  sums_.clear();
  leaves_.clear();
  auto num_leaves = here_.logical_ranks.leaves_of(here_.member).size();
  if (num_leaves == 0) return;
  if (storage == leaf_storage::partial_sums)
    sums_.emplace_back(here_.logical_ranks, here_.member, sum_.num_elements(), nodes_,
                       [](tensor& left, const tensor& right) { axpy(1, right, left); });
  else
    leaves_.push_back(sum_);
  while (!leaves_.empty() && leaves_.size() < num_leaves)
    leaves_.push_back(tensor::zeros(sum_.shape(), dtype::f32, sum_.device()));
}

tensor reduced_bucket::leaf(int index) const {
  auto at = static_cast<std::size_t>(index);
  if (!sums_.empty()) return sums_.front().place_of(at);
  return leaves_.empty() ? sum_ : leaves_.at(at);
}

tensor reduced_bucket::part_of(const tensor& leaf, std::size_t position) const {
  const auto& part = parts_[position];
  return leaf.rows(part.first, part.extents.num_elements()).reshape(part.extents);
}

void reduced_bucket::add_leaf(int index) {
  if (sums_.empty()) return;
  auto& sums = sums_.front();
  if (index == 0) sums.restart();
  auto at = static_cast<std::size_t>(index);
  sums.add(here_.logical_ranks.leaves_of(here_.member).at(at), sums.place_of(at));
}

work reduced_bucket::all_reduce(std::int64_t first, std::int64_t count) const {
  auto sum = sum_.rows(first, count);
  if (sums_.empty()) return gradients::all_reduce_nodes({}, sum, replicas_, group_);
  return gradients::all_reduce_nodes(nodes_.shape()[0] == 1 ? sum : nodes_, sum, replicas_, group_);
}

}  // namespace troupe
