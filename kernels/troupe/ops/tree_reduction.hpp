#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "troupe/ops/copy_bytes.hpp"
#include "troupe/tensor/dtype.hpp"

namespace troupe {

/// How several values become one. `mean` is the sum divided by their number at the end, toward zero for
/// integers; `max` and `min` give NaN where there is one.
enum class reduce_op : std::uint8_t { sum, mean, max, min, product };
/// "sum", ...
std::string_view to_string(reduce_op op);

/// Elements of several members' arrays, reduced in one fixed binary tree over the members: [0, n) is split at
/// the largest power of two below n, and so are its halves. So the bits do not depend on who reduces which
/// part, and a member that holds an aligned block of leaves may reduce them by itself beforehand. bf16 and
/// f16 are summed in f32 and rounded once, at the root; integers wrap around.
///
/// inputs: 1 <= n < 32768 arrays of `count` elements in CPU memory; outputs: arrays that each get the result.
/// An output may be one of the inputs, but must not overlap one otherwise. Throws std::invalid_argument for
/// bool.
void tree_reduce(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store = store_kind::cached);

/// A node of that tree over n members: the members [first, first + count).
struct tree_node {
  int first = 0, count = 1;
  bool operator==(const tree_node&) const = default;
};
/// The largest nodes of the tree over n members of which all leaves are in `members` (ascending), in order.
std::vector<tree_node> nodes_within(std::span<const int> members, int num_members);
/// In which dtype the elements of a node are that was reduced by itself: not rounded yet.
dtype node_type(const tree_node& of, dtype type);
/// Reduces the inputs of a node's members, in order, to elements of node_type: what the whole tree needs of
/// them.
void reduce_node(std::span<const std::byte* const> inputs, std::byte* output, std::int64_t count, dtype type,
                 reduce_op op);

/// The elements of a node, in node_type.
struct node_elements {
  const std::byte* elements = nullptr;
  int num_members = 1;
};
/// tree_reduce, where some nodes have been reduced by themselves: `inputs` are nodes in order that together
/// cover the members. The same bits.
void tree_reduce(std::span<const node_elements> inputs, std::span<std::byte* const> outputs,
                 std::int64_t count, dtype type, reduce_op op, store_kind store = store_kind::cached);

}  // namespace troupe
