#include "troupe/collective/network/share_reduction.hpp"

#include "troupe/collective/network/blocks.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::network {
namespace {

/// One block of the own share on its way from all the others.
struct awaited_block {
  std::vector<std::byte> memory;
  std::vector<std::shared_ptr<const transfer>> coming;
  std::vector<const std::byte*> inputs;  ///< by member

  bool is_there() {
    while (!coming.empty() && coming.back()->is_done()) coming.pop_back();
    return coming.empty();
  }
};

void await_block(conversation& at, awaited_block& into, const blocks& own, std::uint32_t block) {
  auto which = own[block];
  auto size = static_cast<std::size_t>(which.count) * at.element_bytes();
  into.memory.resize(static_cast<std::size_t>(own.longest()) * at.element_bytes() *
                     static_cast<std::size_t>(at.num_members() - 1));
  into.inputs.assign(static_cast<std::size_t>(at.num_members()), at.input(which).data());
  for (int i = 1; i < at.num_members(); ++i) {
    auto from = at.after(i);
    auto place = std::span(into.memory).subspan(static_cast<std::size_t>(i - 1) * size, size);
    into.inputs[static_cast<std::size_t>(from)] = place.data();
    into.coming.push_back(at.receive(from, carried::inputs, block, place));
  }
}

/// Round by round, so that everybody gets its first blocks first.
void send_inputs(conversation& at, const std::vector<share>& shares) {
  bool sent_any = true;
  for (std::uint32_t block = 0; std::exchange(sent_any, false); ++block)
    for (int i = 1; i < at.num_members(); ++i) {
      auto to = at.after(i);
      blocks theirs(at, shares[static_cast<std::size_t>(to)]);
      if (block >= theirs.count()) continue;
      at.send(to, carried::inputs, block, at.input(theirs[block]));
      sent_any = true;
    }
}

}  // namespace

algorithm reduce_shares(conversation& at, std::vector<share> shares, std::byte* result,
                        block_hook on_reduced) {
  const auto& signature = at.what().signature;
  blocks own(at, shares[static_cast<std::size_t>(at.member())]);
  auto ahead = std::min(own.count(), static_cast<std::uint32_t>(std::max(1, at.sizes().blocks_ahead)));
  std::vector<awaited_block> awaited(ahead);
  for (std::uint32_t block = 0; block < ahead; ++block) await_block(at, awaited[block], own, block);
  send_inputs(at, shares);
  for (std::uint32_t block = 0; block < own.count(); ++block) {
    auto& next = awaited[block % ahead];
    co_await until([&] { return next.is_there(); });
    auto count = own[block].count;
    tree_reduce(next.inputs, {&result, 1}, count, signature.type, signature.op);
    auto size = static_cast<std::size_t>(count) * at.element_bytes();
    if (on_reduced) on_reduced(block, {result, size});
    result += size;
    if (block + ahead < own.count()) await_block(at, next, own, block + ahead);
  }
}

void reduce_whole(const conversation& at, std::span<const std::byte> received) {
  const auto& signature = at.what().signature;
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < at.num_members(); ++i) {
    auto place = static_cast<std::size_t>(i < at.member() ? i : i - 1) * at.whole_bytes();
    inputs.push_back(i == at.member() ? at.what().input.bytes().data() : received.data() + place);
  }
  auto* result = at.output({0, signature.count}).data();
  tree_reduce(inputs, {&result, 1}, signature.count, signature.type, signature.op);
}

}  // namespace troupe::network
