#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "troupe/collective/net/algorithms.hpp"
#include "troupe/ops/tree_reduction.hpp"

// all_reduce, reduce_scatter and reduce. n: members, S: bytes of the call.
//
// Small: each member sends its whole input to the members that need the result. Each of these reduces the n
// inputs, in the order of the tree, so all have the same bits.
//
// Large: a direct reduce-scatter. The elements are divided into n ranges. Each member sends range i of its
// input to member i, in blocks. Member i receives a block from all others, reduces it, and passes it on,
// while the next blocks are in flight (network_sizes::blocks_ahead of them). A reduce_scatter ends here; in
// all_reduce a reduced block goes to all others, in reduce to the root.
//
// Over leaves a member contributes nodes of the tree, f32, in place of one input: a message for each.
// Members without nodes send none, so a dissemination makes the others wait for them.
//
// The output may be the input. In small calls the output is written when all sends are done. In large calls
// the result of a block arrives only after its reducer has received this member's input of that block.

namespace troupe::collective::net {
namespace {

/// Called for each block of the own range when it has been reduced.
using block_callback = std::function<void(std::uint32_t block, std::span<const std::byte> reduced)>;

/// The inputs of the members to a reduction: a leaf of the call's dtype each, or nodes in f32.
struct reduction_inputs {
  explicit reduction_inputs(const net_call& call)
      : nodes(call.operation().nodes),
        are_nodes(!nodes.empty()),
        element_bytes(are_nodes ? sizeof(float) : call.element_bytes()) {
    for (int i = 0; i < call.num_members(); ++i) {
      if (!are_nodes) nodes.push_back({{i, 1}, i, 0});
      numbers.push_back(num_inputs(call.operation(), i));
    }
  }
  int number_of(int member) const { return numbers[static_cast<std::size_t>(member)]; }
  bool all_have_inputs() const { return std::ranges::find(numbers, 0) == numbers.end(); }
  /// The number of a message among those of a payload.
  std::uint32_t message(int member, int row, std::uint32_t block) const {
    return block * static_cast<std::uint32_t>(number_of(member)) + static_cast<std::uint32_t>(row);
  }
  /// Some elements of one of this member's inputs.
  std::span<const std::byte> own(const net_call& call, int row, const element_range& range) const {
    auto first = row * call.operation().signature.count + range.first;
    return call.operation().input.bytes().subspan(static_cast<std::size_t>(first) * element_bytes,
                                                  static_cast<std::size_t>(range.count) * element_bytes);
  }

  std::vector<member_node> nodes;  ///< in the order of the tree
  bool are_nodes;
  std::size_t element_bytes;
  std::vector<int> numbers;  ///< of nodes, by member
};

/// One block of elements that is being received from all other members.
struct pending_block {
  std::vector<std::byte> memory;
  std::vector<std::shared_ptr<const transfer>> receives;
  std::vector<node_elements> inputs;  ///< in the order of the tree

  bool is_complete() {
    while (!receives.empty() && receives.back()->is_done()) receives.pop_back();
    return receives.empty();
  }
};

void receive_block(net_call& call, const reduction_inputs& from, pending_block& into,
                   const element_range& range, std::uint32_t block) {
  auto size = static_cast<std::size_t>(range.count) * from.element_bytes;
  auto num_own = static_cast<std::size_t>(from.number_of(call.member()));
  into.memory.resize(std::max(into.memory.size(), size * (from.nodes.size() - num_own)));
  into.inputs.clear();
  std::size_t offset = 0;
  for (const auto& each : from.nodes) {
    const std::byte* elements = nullptr;
    if (each.member == call.member()) {
      elements = from.own(call, each.row, range).data();
    } else {
      auto place = std::span(into.memory).subspan(offset, size);
      auto message = from.message(each.member, each.row, block);
      into.receives.push_back(call.receive(each.member, payload::inputs, message, place));
      elements = place.data();
      offset += size;
    }
    into.inputs.push_back({elements, each.node.count, from.are_nodes});
  }
}

void send_block(net_call& call, const reduction_inputs& from, int to, const element_range& range,
                std::uint32_t block) {
  for (int row = 0; row < from.number_of(call.member()); ++row)
    call.send(to, payload::inputs, from.message(call.member(), row, block), from.own(call, row, range));
}

/// Sends the others their ranges of the own inputs. In rounds: the first blocks of all members, then
/// the second ones, so that all can begin early.
void send_inputs(net_call& call, const reduction_inputs& from, const std::vector<element_range>& ranges) {
  bool sent_any = true;
  for (std::uint32_t block = 0; std::exchange(sent_any, false); ++block)
    for (int i = 1; i < call.num_members(); ++i) {
      auto to = call.after(i);
      blocks theirs(call, ranges[static_cast<std::size_t>(to)]);
      if (block >= theirs.count()) continue;
      send_block(call, from, to, theirs[block], block);
      sent_any = true;
    }
}

/// Reduces a block that is complete.
void reduce_block(const net_call& call, const pending_block& block, std::int64_t count, std::byte* result) {
  const auto& signature = call.operation().signature;
  tree_reduce(block.inputs, {&result, 1}, count, signature.type, signature.op);
}

/// The direct reduce-scatter: member i reduces ranges[i] of all inputs. `result`: where the own range is
/// reduced to; it may be that range of the own input. Own sends may still be in flight when it ends.
algorithm reduce_ranges(net_call& call, std::vector<element_range> ranges, std::byte* result,
                        block_callback on_reduced) {
  reduction_inputs from(call);
  blocks own(call, ranges[static_cast<std::size_t>(call.member())]);
  auto ahead = std::min(own.count(), static_cast<std::uint32_t>(std::max(1, call.sizes().blocks_ahead)));
  std::vector<pending_block> pending(ahead);
  for (std::uint32_t block = 0; block < ahead; ++block)
    receive_block(call, from, pending[block], own[block], block);
  send_inputs(call, from, ranges);
  for (std::uint32_t block = 0; block < own.count(); ++block) {
    auto& next = pending[block % ahead];
    co_await until([&] { return next.is_complete(); });
    auto count = own[block].count;
    reduce_block(call, next, count, result);
    auto size = static_cast<std::size_t>(count) * call.element_bytes();
    if (on_reduced) on_reduced(block, {result, size});
    result += size;
    if (block + ahead < own.count()) receive_block(call, from, next, own[block + ahead], block + ahead);
  }
}

element_range whole_range(const net_call& call) { return {0, call.operation().signature.count}; }

/// By member.
std::vector<element_range> equal_ranges(const net_call& call) {
  std::vector<element_range> ranges;
  for (int i = 0; i < call.num_members(); ++i)
    ranges.push_back(
        range_of_member(call.operation().signature.count, call.element_bytes(), call.num_members(), i));
  return ranges;
}

/// Posts receives for the others' results, into the output.
void receive_results(net_call& call, const std::vector<element_range>& ranges) {
  for (int i = 1; i < call.num_members(); ++i) {
    auto from = call.after(i);
    blocks theirs(call, ranges[static_cast<std::size_t>(from)]);
    for (std::uint32_t block = 0; block < theirs.count(); ++block)
      call.receive(from, payload::results, block, call.output(theirs[block]));
  }
}

algorithm all_reduce_small(net_call& call) {
  reduction_inputs from(call);
  pending_block whole;
  receive_block(call, from, whole, whole_range(call), 0);
  for (int i = 1; i < call.num_members(); ++i) send_block(call, from, call.after(i), whole_range(call), 0);
  co_await until([&] { return call.all_transfers_done(); });
  reduce_block(call, whole, whole_range(call).count, call.output(whole_range(call)).data());
}

algorithm all_reduce_large(net_call& call) {
  auto ranges = equal_ranges(call);
  receive_results(call, ranges);
  auto* result = call.output(ranges[static_cast<std::size_t>(call.member())]).data();
  auto reduction =
      reduce_ranges(call, ranges, result, [&call](std::uint32_t block, std::span<const std::byte> bytes) {
        for (int i = 1; i < call.num_members(); ++i) call.send(call.after(i), payload::results, block, bytes);
      });
  co_await finished(reduction);
  co_await until([&] { return call.all_transfers_done(); });
}

algorithm reduce_small(net_call& call) {
  auto root = call.operation().signature.root;
  reduction_inputs from(call);
  pending_block whole;
  if (call.member() == root)
    receive_block(call, from, whole, whole_range(call), 0);
  else
    send_block(call, from, root, whole_range(call), 0);
  co_await until([&] { return call.all_transfers_done(); });
  if (call.member() == root)
    reduce_block(call, whole, whole_range(call).count, call.output(whole_range(call)).data());
}

// The root receives S (n-1)/n bytes of inputs and as many of results, instead of S (n-1).
algorithm reduce_large(net_call& call) {
  auto root = call.operation().signature.root;
  auto ranges = equal_ranges(call);
  const auto& own = ranges[static_cast<std::size_t>(call.member())];
  std::vector<std::byte> reduced;
  std::byte* result = nullptr;
  block_callback send_to_root = nullptr;
  if (call.member() == root) {
    result = call.output(own).data();
    receive_results(call, ranges);
  } else {
    reduced.resize(static_cast<std::size_t>(own.count) * call.element_bytes());
    result = reduced.data();
    send_to_root = [&call, root](std::uint32_t block, std::span<const std::byte> bytes) {
      call.send(root, payload::results, block, bytes);
    };
  }
  auto reduction = reduce_ranges(call, ranges, result, send_to_root);
  co_await finished(reduction);
  co_await until([&] { return call.all_transfers_done(); });
}

}  // namespace

algorithm all_reduce(net_call call) {
  reduction_inputs from(call);
  auto sent = static_cast<std::size_t>(max_inputs(call.operation(), call.num_members()) *
                                       call.operation().signature.count * (call.num_members() - 1)) *
              from.element_bytes;
  auto chosen = sent <= call.sizes().whole_inputs ? all_reduce_small(call) : all_reduce_large(call);
  if (sent > call.sizes().whole_inputs || !from.all_have_inputs()) call.announce_to_next();
  co_await finished(chosen);
  if (from.all_have_inputs()) co_return;
  auto arrival = dissemination(call);
  co_await finished(arrival);
}

algorithm reduce_scatter(net_call call) {
  call.announce_to_next();
  std::vector<element_range> parts;
  for (int i = 0; i < call.num_members(); ++i) parts.push_back(part_of(call.operation(), i));
  auto own_count = parts[static_cast<std::size_t>(call.member())].count;
  auto reduction = reduce_ranges(call, parts, call.output({0, own_count}).data(), nullptr);
  co_await finished(reduction);
  co_await until([&] { return call.all_transfers_done(); });
}

algorithm reduce(net_call call) {
  call.announce_to_next();
  auto chosen = call.whole_bytes() <= call.sizes().whole_inputs ? reduce_small(call) : reduce_large(call);
  co_await finished(chosen);
  auto arrival = dissemination(call);
  co_await finished(arrival);
}

}  // namespace troupe::collective::net
