#include <functional>
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
// while the next blocks are in flight (network_sizes::blocks_ahead of them). reduce_scatter ends here; in
// all_reduce a reduced block goes to all others, in reduce to the root.
//
// The output may be the input. In small calls the output is written when all sends are done. In large calls
// the result of a block arrives only after its reducer has received this member's input of that block.

namespace troupe::net {
namespace {

/// Called for each block of the own range when it has been reduced.
using block_callback = std::function<void(std::uint32_t block, std::span<const std::byte> reduced)>;

/// One block of the own range that is being received from all other members.
struct pending_block {
  std::vector<std::byte> memory;
  std::vector<std::shared_ptr<const transfer>> receives;
  std::vector<const std::byte*> inputs;  ///< by member

  bool is_complete() {
    while (!receives.empty() && receives.back()->is_done()) receives.pop_back();
    return receives.empty();
  }
};

void receive_block(net_call& call, pending_block& into, const blocks& own, std::uint32_t block) {
  auto range = own[block];
  auto size = static_cast<std::size_t>(range.count) * call.element_bytes();
  into.memory.resize(static_cast<std::size_t>(own.longest()) * call.element_bytes() *
                     static_cast<std::size_t>(call.num_members() - 1));
  into.inputs.assign(static_cast<std::size_t>(call.num_members()), call.input(range).data());
  for (int i = 1; i < call.num_members(); ++i) {
    auto from = call.after(i);
    auto place = std::span(into.memory).subspan(static_cast<std::size_t>(i - 1) * size, size);
    into.inputs[static_cast<std::size_t>(from)] = place.data();
    into.receives.push_back(call.receive(from, payload::inputs, block, place));
  }
}

/// Sends the others their ranges of the own input. In rounds: the first blocks of all members, then the
/// second ones, so that all can begin early.
void send_inputs(net_call& call, const std::vector<element_range>& ranges) {
  bool sent_any = true;
  for (std::uint32_t block = 0; std::exchange(sent_any, false); ++block)
    for (int i = 1; i < call.num_members(); ++i) {
      auto to = call.after(i);
      blocks theirs(call, ranges[static_cast<std::size_t>(to)]);
      if (block >= theirs.count()) continue;
      call.send(to, payload::inputs, block, call.input(theirs[block]));
      sent_any = true;
    }
}

/// The direct reduce-scatter: member i reduces ranges[i] of all inputs. `result`: where the own range is
/// reduced to; it may be that range of the own input. Own sends may still be in flight when it ends.
algorithm reduce_ranges(net_call& call, std::vector<element_range> ranges, std::byte* result,
                        block_callback on_reduced) {
  const auto& signature = call.operation().signature;
  blocks own(call, ranges[static_cast<std::size_t>(call.member())]);
  auto ahead = std::min(own.count(), static_cast<std::uint32_t>(std::max(1, call.sizes().blocks_ahead)));
  std::vector<pending_block> pending(ahead);
  for (std::uint32_t block = 0; block < ahead; ++block) receive_block(call, pending[block], own, block);
  send_inputs(call, ranges);
  for (std::uint32_t block = 0; block < own.count(); ++block) {
    auto& next = pending[block % ahead];
    co_await until([&] { return next.is_complete(); });
    auto count = own[block].count;
    tree_reduce(next.inputs, {&result, 1}, count, signature.type, signature.op);
    auto size = static_cast<std::size_t>(count) * call.element_bytes();
    if (on_reduced) on_reduced(block, {result, size});
    result += size;
    if (block + ahead < own.count()) receive_block(call, next, own, block + ahead);
  }
}

/// Reduces whole inputs into the output: the own one and those `received` from the others, in their order.
void reduce_whole(const net_call& call, std::span<const std::byte> received) {
  const auto& signature = call.operation().signature;
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < call.num_members(); ++i) {
    auto offset = static_cast<std::size_t>(i < call.member() ? i : i - 1) * call.whole_bytes();
    inputs.push_back(i == call.member() ? call.operation().input.bytes().data() : received.data() + offset);
  }
  auto* result = call.output({0, signature.count}).data();
  tree_reduce(inputs, {&result, 1}, signature.count, signature.type, signature.op);
}

/// Posts receives for the whole inputs of all other members.
std::vector<std::byte> receive_whole_inputs(net_call& call) {
  auto size = call.whole_bytes();
  std::vector<std::byte> received(size * static_cast<std::size_t>(call.num_members() - 1));
  for (int i = 0, index = 0; i < call.num_members(); ++i)
    if (i != call.member())
      call.receive(i, payload::inputs, 0,
                   std::span(received).subspan(static_cast<std::size_t>(index++) * size, size));
  return received;
}

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
  auto received = receive_whole_inputs(call);
  for (int i = 1; i < call.num_members(); ++i)
    call.send(call.after(i), payload::inputs, 0, call.operation().input.bytes());
  co_await until([&] { return call.all_transfers_done(); });
  reduce_whole(call, received);
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
  std::vector<std::byte> received;
  if (call.member() == root)
    received = receive_whole_inputs(call);
  else
    call.send(root, payload::inputs, 0, call.operation().input.bytes());
  co_await until([&] { return call.all_transfers_done(); });
  if (call.member() == root) reduce_whole(call, received);
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
  auto sent = call.whole_bytes() * static_cast<std::size_t>(call.num_members() - 1);
  auto chosen = sent <= call.sizes().whole_inputs ? all_reduce_small(call) : all_reduce_large(call);
  if (sent > call.sizes().whole_inputs) call.announce_to_next();
  co_await finished(chosen);
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

}  // namespace troupe::net
