#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/calls/logical_rank_map.hpp"
#include "troupe/ops/tree_reduction.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::collective {

enum class collective_kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  barrier,
  send,
  receive
};
std::string_view to_string(collective_kind kind);

/// What must be equal on all members that make the same call. Plain bytes, which are sent in messages and
/// through shared memory.
struct call_signature {
  collective_kind kind = collective_kind::barrier;
  reduce_op op = reduce_op::sum;
  dtype type = dtype::f32;
  std::uint8_t unused = 0;
  std::int32_t root = -1;  ///< member index of broadcast, reduce, gather and scatter, else -1
  /// Elements of the tensor; of all parts together in reduce_scatter, all_gather, gather, scatter and
  /// all_to_all.
  std::int64_t count = 0;
  /// A hash of the parts' sizes where they are unequal, the logical_rank_map's signature where leaves are
  /// reduced, else 0.
  std::uint64_t layout = 0;
  bool operator==(const call_signature&) const = default;
};

/// "all_reduce(sum, f32[1024])", "all_reduce(sum, f32[8] of 4 leaves mapped as 5d21c0e8a94f)",
/// "all_gather(f32[6] in unequal parts, list 5d21c0e8a94f0b12)", "broadcast(f32[8], root 2)", "barrier"
std::string to_string(const call_signature& signature);

/// The operation of one call of one member, after its arguments were checked. n: members, c: signature.count.
///
/// | kind | input | output | parts |
/// |---|---|---|---|
/// | all_reduce | [c] | [c], may be the input | |
/// | all_reduce with nodes | f32 [m, c], m: its nodes | [c], may be the first c of the input | |
/// | reduce_scatter | [c] | [parts[me]], may be that part of the input | n, sum c |
/// | all_gather | [parts[me]], may be that part of the output | [c] | n, sum c |
/// | broadcast | as output | [c] | |
/// | reduce | [c] | root: [c], may be the input; else undefined | |
/// | gather | [parts[me]] | root: [c]; else undefined | n, sum c |
/// | scatter | root: [c]; else undefined | [parts[me]] | n, sum c |
/// | all_to_all | [c] | [c], not the input | n equal ones |
/// | send | [c] | undefined | |
/// | receive | undefined | [c] | |
struct collective_operation {
  collective_operation() = default;
  collective_operation(const call_signature& says, tensor from, tensor to,
                       std::vector<std::int64_t> part_sizes = {}, member_index partner = -1)
      : signature(says),
        input(std::move(from)),
        output(std::move(to)),
        parts(std::move(part_sizes)),
        peer(partner) {}

  call_signature signature;
  tensor input, output;
  std::vector<std::int64_t> parts;  ///< elements, by member
  /// Of an all_reduce over leaves whose members contribute nodes of the tree: all nodes, in order. The input
  /// of a member without nodes is undefined. Otherwise empty, and each member contributes one leaf.
  std::vector<member_node> nodes;
  member_index peer = -1;  ///< member index, of send and receive

  /// The elements of the output. Not const, since `output` is a handle to them.
  std::span<std::byte> output_bytes() const { return const_cast<tensor&>(output).bytes(); }
};

/// The first element of part `member`.
std::int64_t part_begin(const collective_operation& what, member_index member);

// They make the operation of a call from its arguments. Tensors that do not fit each other throw
// std::invalid_argument, which names the call, the argument, what was expected and what it got.

collective_operation all_reduce_of(const tensor& x, const tensor& result, reduce_op op);
/// nodes: f32 [m, c] for the m nodes of the member, undefined if it has none. result: f32, bf16 or f16 [c].
/// op: sum or mean.
collective_operation all_reduce_leaves_of(const tensor& nodes, const tensor& result,
                                          const logical_rank_map& map, reduce_op op, member_index member);
collective_operation reduce_scatter_of(const tensor& x, tensor result, std::vector<std::int64_t> parts,
                                       reduce_op op, member_index member);
collective_operation all_gather_of(const tensor& part, tensor all, std::vector<std::int64_t> parts,
                                   member_index member);
collective_operation broadcast_of(tensor x, member_index root);
/// result: undefined on all members but the root.
collective_operation reduce_of(const tensor& x, tensor result, member_index root, reduce_op op);
collective_operation gather_of(const tensor& part, tensor all, member_index root, int num_members);
collective_operation scatter_of(const tensor& all, tensor part, member_index root, int num_members);
collective_operation all_to_all_of(const tensor& x, tensor result, int num_members);
collective_operation send_of(const tensor& x, member_index peer);
collective_operation receive_of(tensor x, member_index peer);

/// Throws std::invalid_argument unless `parts` has one size >= 0 for each member.
void require_parts(const std::vector<std::int64_t>& parts, int num_members, const char* where);

/// How many of the operation's nodes are the member's; 1 of an operation without nodes.
int num_inputs(const collective_operation& what, int member);
/// The largest of these numbers.
int max_inputs(const collective_operation& what, int num_members);

/// Consecutive elements of a tensor.
struct element_range {
  std::int64_t first = 0, count = 0;
};

/// The range of one member when `total` elements are divided among all, nearly equally, in whole cache lines.
inline element_range range_of_member(std::int64_t total, std::size_t element_bytes, int num_members,
                                     int member) {
  auto line = static_cast<std::int64_t>(64 / element_bytes);
  auto lines = (total + line - 1) / line;
  auto begin = std::min(total, lines * member / num_members * line);
  auto end = std::min(total, lines * (member + 1) / num_members * line);
  return {begin, end - begin};
}

/// The part of one member in an operation with parts.
inline element_range part_of(const collective_operation& what, int member) {
  return {part_begin(what, member), what.parts[static_cast<std::size_t>(member)]};
}

}  // namespace troupe::collective
