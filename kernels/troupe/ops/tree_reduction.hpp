#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "troupe/ops/copy_bytes.hpp"
#include "troupe/tensor/dtype.hpp"

namespace troupe {

/// The reduction operator. `mean` divides the sum at the end, towards zero for integers; `max` and `min` give
/// NaN if an operand is NaN.
enum class reduce_op : std::uint8_t { sum, mean, max, min, product };
/// "sum", ...
std::string_view to_string(reduce_op op);

/// Reduces arrays of n members element by element in a fixed binary tree over the members. The range [0, n)
/// is split at the largest power of two below n, and the halves likewise. The tree fixes the rounding, so the
/// bits do not depend on which member reduces which part, and a member may reduce a complete subtree
/// beforehand. Sums of bf16 and f16 are in f32 and rounded once, at the root; integers wrap around.
///
/// inputs: 1 <= n < 32768 arrays of `count` elements in CPU memory; outputs: arrays that each receive the
/// result. An output may be identical to an input, but must not overlap one partly. Throws
/// std::invalid_argument for bool.
void tree_reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store = store_kind::cached);

/// A node of the tree: the members [first, first + count).
struct tree_node {
  int first = 0, count = 1;
  bool operator==(const tree_node&) const = default;
};
/// How many of the `count` > 1 members of a node are in its left child.
constexpr int left_child_count(int count) {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(count - 1)));
}
/// The maximal nodes of the tree whose leaves are all in `members` (ascending), in order.
std::vector<tree_node> nodes_within(std::span<const int> members, int num_members);
/// The dtype of a separately reduced node's elements: f32 for an inner node of floating dtype, since it is
/// not rounded yet.
dtype node_type(const tree_node& node, dtype type);
/// Reduces the inputs of a node's members, in order, to elements of node_type.
void reduce_node(std::span<const std::byte* const> inputs, std::byte* output, std::int64_t count, dtype type,
                 reduce_op op);
/// A leaf of floating dtype in f32, as it enters inner nodes. The output is apart from the input.
void widen_leaf(const std::byte* input, std::byte* output, std::int64_t count, dtype type);

/// The elements of a node, in node_type, or in f32 where a single member's were widened before.
struct node_elements {
  const std::byte* elements = nullptr;
  int num_members = 1;
  bool is_widened = false;
};
/// tree_reduce of separately reduced nodes: `inputs` are nodes in order that together cover all members.
/// Gives the same bits.
void tree_reduce(std::span<const node_elements> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store = store_kind::cached);

}  // namespace troupe
