#include "troupe/parallel/reduced_bucket.hpp"

#include <bit>

#include "troupe/error/errors.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe {

reduced_bucket::reduced_bucket(const planned_bucket& planned, const std::vector<named_parameter>& parameters,
                               communicator& group)
    : parts_(planned.parts) {
  memory_scope counted(memory_category::gradients);
  tensors_.push_back(group.allocate({planned.num_elements}, dtype::f32));
  for (auto index : planned.parameters) {
    const auto& each = parameters[static_cast<std::size_t>(index)];
    if (each.target->value().device() != sum().device())
      throw_invalid("DataParallel",
                    each.name + " on the device of the group's backend " + std::string(group.backend()) +
                        ", " + describe(sum()),
                    describe(each.target->value()));
    parameters_.push_back(each.target);
  }
}

void reduced_bucket::set_leaf_storage(leaf_storage storage, int num_leaves) {
  memory_scope counted(memory_category::gradients);
  storage_ = storage;
  num_leaves_ = num_leaves;
  auto num_tensors = storage == leaf_storage::all_leaves
                         ? num_leaves
                         : std::bit_width(static_cast<unsigned>(num_leaves - 1)) + 1;
  tensors_.resize(1);
  while (tensors_.size() < static_cast<std::size_t>(num_tensors))
    tensors_.push_back(tensor::zeros(sum().shape(), dtype::f32, sum().device()));
}

/// Before leaf i, the complete partial sums correspond to the one bits of i, as in a binary counter.
std::size_t reduced_bucket::tensor_index_of(int index) const {
  return static_cast<std::size_t>(
      storage_ == leaf_storage::all_leaves ? index : std::popcount(static_cast<unsigned>(index)));
}

tensor reduced_bucket::leaf(int index) const { return tensors_.at(tensor_index_of(index)); }

tensor reduced_bucket::part_of(const tensor& leaf, std::size_t position) const {
  const auto& part = parts_[position];
  return leaf.rows(part.first, part.extents.num_elements()).reshape(part.extents);
}

void reduced_bucket::add_leaf(int index) {
  if (storage_ == leaf_storage::all_leaves) return;
  num_held_ = tensor_index_of(index) + 1;
  for (auto halves = static_cast<unsigned>(index); halves & 1U; halves >>= 1U) merge_last();
  while (index + 1 == num_leaves_ && num_held_ > 1) merge_last();
}

void reduced_bucket::merge_last() {
  --num_held_;
  axpy(1, tensors_[num_held_], tensors_[num_held_ - 1]);
}

}  // namespace troupe
