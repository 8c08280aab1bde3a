#include "troupe/collective/network/algorithms.hpp"
#include "troupe/collective/network/blocks.hpp"

namespace troupe::network {
namespace {

// A binomial tree: member r after the root receives from r without its lowest bit, and sends to r plus each
// lower power of two.
algorithm broadcast_small(conversation& at) {
  int n = at.num_members(), root = at.what().signature.root;
  int place = (at.member() - root + n) % n;
  auto bytes = at.output({0, at.what().signature.count});
  int below = 1;
  while (below < n && (place & below) == 0) below *= 2;
  if (place != 0) {
    at.receive((place - below + root) % n, carried::inputs, 0, bytes);
    co_await until([&] { return at.all_done(); });
  }
  for (int distance = below / 2; distance > 0; distance /= 2)
    if (place + distance < n) at.send((place + distance + root) % n, carried::inputs, 0, bytes);
  co_await until([&] { return at.all_done(); });
}

/// The share of the member `place` after the root, which itself has none.
share share_at(const conversation& at, int place) {
  return share_of(at.what().signature.count, at.element_bytes(), at.num_members() - 1, place - 1);
}

void send_shares(conversation& at) {
  bool sent_any = true;
  for (std::uint32_t block = 0; std::exchange(sent_any, false); ++block)
    for (int i = 1; i < at.num_members(); ++i) {
      blocks theirs(at, share_at(at, i));
      if (block >= theirs.count()) continue;
      at.send(at.after(i), carried::inputs, block, at.output(theirs[block]));
      sent_any = true;
    }
}

// The root sends one share to each of the others, who pass the blocks on to each other as they come: nobody
// sends more than S bytes.
algorithm broadcast_large(conversation& at) {
  int n = at.num_members(), root = at.what().signature.root;
  int place = (at.member() - root + n) % n;
  if (place == 0) {
    send_shares(at);
    co_await until([&] { return at.all_done(); });
    co_return;
  }
  for (int i = 1; i < n; ++i) {
    if (i == place) continue;
    blocks theirs(at, share_at(at, i));
    for (std::uint32_t block = 0; block < theirs.count(); ++block)
      at.receive((root + i) % n, carried::results, block, at.output(theirs[block]));
  }
  blocks own(at, share_at(at, place));
  std::vector<std::shared_ptr<const transfer>> coming;
  for (std::uint32_t block = 0; block < own.count(); ++block)
    coming.push_back(at.receive(root, carried::inputs, block, at.output(own[block])));
  for (std::uint32_t block = 0; block < own.count(); ++block) {
    co_await until([&] { return coming[block]->is_done(); });
    for (int i = 1; i < n; ++i)
      if (at.after(i) != root) at.send(at.after(i), carried::results, block, at.output(own[block]));
  }
  co_await until([&] { return at.all_done(); });
}

}  // namespace

algorithm broadcast(conversation at) {
  if (at.num_members() == 1) co_return;
  at.introduce();
  auto part = at.whole_bytes() <= at.sizes().whole_broadcast ? broadcast_small(at) : broadcast_large(at);
  co_await finished(part);
  auto arrivals = everyone_has_come(at);
  co_await finished(arrivals);
}

}  // namespace troupe::network
