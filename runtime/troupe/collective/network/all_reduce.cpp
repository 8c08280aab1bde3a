#include "troupe/collective/network/blocks.hpp"
#include "troupe/collective/network/share_reduction.hpp"

namespace troupe::network {
namespace {

// Everybody sends all its elements to everybody, who reduce them alike. (Recursive doubling would not be the
// fixed tree where n is no power of two.)
algorithm all_reduce_small(conversation& at) {
  auto size = at.whole_bytes();
  std::vector<std::byte> received(size * static_cast<std::size_t>(at.num_members() - 1));
  for (int i = 0, place = 0; i < at.num_members(); ++i)
    if (i != at.member())
      at.receive(i, carried::inputs, 0,
                 std::span(received).subspan(static_cast<std::size_t>(place++) * size, size));
  for (int i = 1; i < at.num_members(); ++i)
    at.send(at.after(i), carried::inputs, 0, at.what().input.bytes());
  // Sends too: the output may be the input.
  co_await until([&] { return at.all_done(); });
  reduce_whole(at, received);
}

// Member i reduces the i-th share and sends each block of it to all as soon as it is there: 2 S (n-1)/n bytes
// leave and reach each member. The input may be the output: a block's result comes only after its reducer has
// received this member's input.
algorithm all_reduce_large(conversation& at) {
  std::vector<share> shares;
  for (int i = 0; i < at.num_members(); ++i)
    shares.push_back(share_of(at.what().signature.count, at.element_bytes(), at.num_members(), i));
  for (int i = 1; i < at.num_members(); ++i) {
    auto from = at.after(i);
    blocks theirs(at, shares[static_cast<std::size_t>(from)]);
    for (std::uint32_t block = 0; block < theirs.count(); ++block)
      at.receive(from, carried::results, block, at.output(theirs[block]));
  }
  auto* result = at.output(shares[static_cast<std::size_t>(at.member())]).data();
  auto part = reduce_shares(at, shares, result, [&at](std::uint32_t block, std::span<const std::byte> bytes) {
    for (int i = 1; i < at.num_members(); ++i) at.send(at.after(i), carried::results, block, bytes);
  });
  co_await finished(part);
  co_await until([&] { return at.all_done(); });
}

}  // namespace

algorithm all_reduce(conversation at) {
  auto sent = at.whole_bytes() * static_cast<std::size_t>(at.num_members() - 1);
  auto part = sent <= at.sizes().whole_inputs ? all_reduce_small(at) : all_reduce_large(at);
  if (sent > at.sizes().whole_inputs) at.introduce();
  co_await finished(part);
}

}  // namespace troupe::network
