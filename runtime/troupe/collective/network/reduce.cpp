#include "troupe/collective/network/blocks.hpp"
#include "troupe/collective/network/share_reduction.hpp"

namespace troupe::network {
namespace {

// Everybody sends all its elements to the root.
algorithm reduce_small(conversation& at) {
  auto root = at.what().signature.root;
  std::vector<std::byte> received;
  if (at.member() != root) {
    at.send(root, carried::inputs, 0, at.what().input.bytes());
  } else {
    auto size = at.whole_bytes();
    received.resize(size * static_cast<std::size_t>(at.num_members() - 1));
    for (int i = 0, place = 0; i < at.num_members(); ++i)
      if (i != root)
        at.receive(i, carried::inputs, 0,
                   std::span(received).subspan(static_cast<std::size_t>(place++) * size, size));
  }
  co_await until([&] { return at.all_done(); });
  if (at.member() == root) reduce_whole(at, received);
}

// Member i reduces the i-th share and sends it to the root, which so receives S (n-1)/n bytes twice instead
// of S n-1 times. The root's output may be its input, as in all_reduce.
algorithm reduce_large(conversation& at) {
  auto root = at.what().signature.root;
  std::vector<share> shares;
  for (int i = 0; i < at.num_members(); ++i)
    shares.push_back(share_of(at.what().signature.count, at.element_bytes(), at.num_members(), i));
  const auto& own = shares[static_cast<std::size_t>(at.member())];
  std::vector<std::byte> reduced;
  std::byte* result = nullptr;
  block_hook pass_on = nullptr;
  if (at.member() == root) {
    result = at.output(own).data();
    for (int i = 1; i < at.num_members(); ++i) {
      auto from = at.after(i);
      blocks theirs(at, shares[static_cast<std::size_t>(from)]);
      for (std::uint32_t block = 0; block < theirs.count(); ++block)
        at.receive(from, carried::results, block, at.output(theirs[block]));
    }
  } else {
    reduced.resize(static_cast<std::size_t>(own.count) * at.element_bytes());
    result = reduced.data();
    pass_on = [&at, root](std::uint32_t block, std::span<const std::byte> bytes) {
      at.send(root, carried::results, block, bytes);
    };
  }
  auto part = reduce_shares(at, shares, result, pass_on);
  co_await finished(part);
  co_await until([&] { return at.all_done(); });
}

}  // namespace

algorithm reduce(conversation at) {
  at.introduce();
  auto part = at.whole_bytes() <= at.sizes().whole_inputs ? reduce_small(at) : reduce_large(at);
  co_await finished(part);
  auto arrivals = everyone_has_come(at);
  co_await finished(arrivals);
}

}  // namespace troupe::network
