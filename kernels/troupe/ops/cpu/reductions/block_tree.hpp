#pragma once
#include <array>
#include <cstring>
#include <string>

#include "troupe/error/errors.hpp"
#include "troupe/ops/cpu/loops/block_conversion.hpp"
#include "troupe/ops/cpu/reductions/member_inputs.hpp"
#include "troupe/ops/cpu/reductions/pair_reduction.hpp"

namespace troupe::cpu {

constexpr std::int64_t tree_block_elements = 256;

/// The accumulation type: float for bf16 and f16, else T.
template <class T>
using combined_as = std::conditional_t<std::is_integral_v<T>, T, float>;

/// Evaluates the tree over members' arrays of T block by block; the blocks of all live nodes fit into the L1
/// cache.
template <class T>
class block_tree {
 public:
  using value = combined_as<T>;

  block_tree(const member_inputs& inputs, reduce_op op) : inputs_(inputs.by_first_member()), op_(op) {
    if (inputs_.size() >= std::size_t{1} << (max_levels - 1))
      throw_invalid("tree_reduce", "fewer than 32768 inputs", std::to_string(inputs_.size()));
  }

  /// The root's elements [first, first + count), before division (mean) and rounding.
  const value* sum(std::int64_t first, std::int64_t count) {
    return node(0, inputs_.size(), 0, first, count);
  }

  /// The result of elements [first, first + count), as T.
  const std::byte* reduce(std::int64_t first, std::int64_t count) {
    const value* root = sum(first, count);
    if (op_ == reduce_op::mean) root = divide(root, count);
    if constexpr (std::is_same_v<T, value>) {
      return reinterpret_cast<const std::byte*>(root);
    } else {
      from_float(root, rounded_.data(), count);
      return reinterpret_cast<const std::byte*>(rounded_.data());
    }
  }

 private:
  static constexpr std::size_t max_levels = 16;
  using block = std::array<value, tree_block_elements>;

  const value* node(std::size_t begin, std::size_t end, std::size_t level, std::int64_t first,
                    std::int64_t count) {
    if (is_given(begin, end)) return given(begin, level, first, count);
    if constexpr (std::is_same_v<T, float>)
      if (const float* sum = short_sum(begin, end, level, first, count)) return sum;
    auto middle = middle_of(begin, end);
    const value* left = node(begin, middle, level, first, count);
    const value* right = node(middle, end, level + 1, first, count);
    combine(op_, left, right, scratch_[level].data(), count);
    return scratch_[level].data();
  }

  /// Whether the node is an input (a leaf or a separately reduced node).
  bool is_given(std::size_t begin, std::size_t end) const {
    return inputs_[begin].elements && static_cast<std::size_t>(inputs_[begin].num_members) == end - begin;
  }
  static std::size_t middle_of(std::size_t begin, std::size_t end) {
    return begin + static_cast<std::size_t>(left_child_count(static_cast<int>(end - begin)));
  }

  /// The input's floats in place; null if the node is not an input or not aligned.
  const float* aligned(std::size_t begin, std::size_t end, std::int64_t first) const {
    if (!is_given(begin, end)) return nullptr;
    const auto* at = reinterpret_cast<const float*>(inputs_[begin].elements) + first;
    return reinterpret_cast<std::uintptr_t>(at) % alignof(float) == 0 ? at : nullptr;
  }

  /// Sums two or four inputs directly, without intermediate blocks; null if the node has another form.
  const float* short_sum(std::size_t begin, std::size_t end, std::size_t level, std::int64_t first,
                         std::int64_t count) {
    if (op_ != reduce_op::sum && op_ != reduce_op::mean) return nullptr;
    auto middle = middle_of(begin, end);
    float* result = scratch_[level].data();
    const float *left = aligned(begin, middle, first), *right = aligned(middle, end, first);
    if (left && right) return sum_of_two(left, right, result, count), result;
    if (left || right || middle - begin < 2 || end - middle < 2) return nullptr;
    auto in_left = middle_of(begin, middle), in_right = middle_of(middle, end);
    const float *a = aligned(begin, in_left, first), *b = aligned(in_left, middle, first);
    const float *c = aligned(middle, in_right, first), *d = aligned(in_right, end, first);
    if (!a || !b || !c || !d) return nullptr;
    return sum_of_four(a, b, c, d, result, count), result;
  }

  const value* given(std::size_t member, std::size_t level, std::int64_t first, std::int64_t count) {
    const auto& input = inputs_[member];
    if constexpr (!std::is_same_v<T, value>) {
      if (input.num_members > 1 || input.is_widened) {
        std::memcpy(scratch_[level].data(), input.elements + static_cast<std::size_t>(first) * sizeof(value),
                    static_cast<std::size_t>(count) * sizeof(value));
        return scratch_[level].data();
      }
    }
    const auto* elements = reinterpret_cast<const T*>(input.elements) + first;
    if constexpr (std::is_same_v<T, value>) {
      if (reinterpret_cast<std::uintptr_t>(elements) % alignof(T) == 0) return elements;
      std::memcpy(scratch_[level].data(), elements, static_cast<std::size_t>(count) * sizeof(T));
    } else {
      std::memcpy(rounded_.data(), elements, static_cast<std::size_t>(count) * sizeof(T));
      to_float(rounded_.data(), scratch_[level].data(), count);
    }
    return scratch_[level].data();
  }

  const value* divide(const value* root, std::int64_t count) {
    auto* mean = scratch_[0].data();
    auto num_members = static_cast<value>(inputs_.size());
    for (std::int64_t i = 0; i < count; ++i) mean[i] = static_cast<value>(root[i] / num_members);
    return mean;
  }

  std::span<const node_elements> inputs_;  // indexed by first member
  reduce_op op_;
  std::array<block, max_levels> scratch_;  // one block per level of the tree
  std::array<T, tree_block_elements> rounded_;
};

}  // namespace troupe::cpu
