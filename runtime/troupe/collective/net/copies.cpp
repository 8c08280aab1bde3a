#include <utility>
#include <vector>

#include "troupe/collective/net/algorithms.hpp"
#include "troupe/ops/tree_reduction.hpp"

// all_gather, broadcast, gather, scatter, all_to_all, barrier, send and receive. n: members, S: bytes of the
// call. Where every pair exchanges a message, member i sends to i + 1 first, then to i + 2 and so on, so that
// not all send to the same member at a time.

namespace troupe::collective::net {
namespace {

// A binomial tree. `place` is a member's distance from the root. Place r receives from r without its lowest
// bit, and sends to r plus each lower power of two. ceil(log2 n) rounds of S bytes.
algorithm broadcast_small(net_call& call) {
  int n = call.num_members(), root = call.operation().signature.root;
  int place = (call.member() - root + n) % n;
  auto bytes = call.output({0, call.operation().signature.count});
  int lowest_bit = 1;
  while (lowest_bit < n && (place & lowest_bit) == 0) lowest_bit *= 2;
  if (place != 0) {
    call.receive((place - lowest_bit + root) % n, payload::inputs, 0, bytes);
    co_await until([&] { return call.all_transfers_done(); });
  }
  for (int distance = lowest_bit / 2; distance > 0; distance /= 2)
    if (place + distance < n) call.send((place + distance + root) % n, payload::inputs, 0, bytes);
  co_await until([&] { return call.all_transfers_done(); });
}

/// The range of the member at distance `place` from the root, which has none itself.
element_range range_at(const net_call& call, int place) {
  return range_of_member(call.operation().signature.count, call.element_bytes(), call.num_members() - 1,
                         place - 1);
}

/// By the root: sends each member its range, in rounds of one block for each.
void send_ranges(net_call& call) {
  bool sent_any = true;
  for (std::uint32_t block = 0; std::exchange(sent_any, false); ++block)
    for (int i = 1; i < call.num_members(); ++i) {
      blocks theirs(call, range_at(call, i));
      if (block >= theirs.count()) continue;
      call.send(call.after(i), payload::inputs, block, call.output(theirs[block]));
      sent_any = true;
    }
}

// The root divides the elements into n - 1 ranges and sends one to each other member. These forward the
// blocks to each other as they arrive. No member sends more than S bytes.
algorithm broadcast_large(net_call& call) {
  int n = call.num_members(), root = call.operation().signature.root;
  int place = (call.member() - root + n) % n;
  if (place == 0) {
    send_ranges(call);
    co_await until([&] { return call.all_transfers_done(); });
    co_return;
  }
  for (int i = 1; i < n; ++i) {
    if (i == place) continue;
    blocks theirs(call, range_at(call, i));
    for (std::uint32_t block = 0; block < theirs.count(); ++block)
      call.receive((root + i) % n, payload::results, block, call.output(theirs[block]));
  }
  blocks own(call, range_at(call, place));
  std::vector<std::shared_ptr<const transfer>> receives;
  for (std::uint32_t block = 0; block < own.count(); ++block)
    receives.push_back(call.receive(root, payload::inputs, block, call.output(own[block])));
  for (std::uint32_t block = 0; block < own.count(); ++block) {
    co_await until([&] { return receives[block]->is_done(); });
    for (int i = 1; i < n; ++i)
      if (call.after(i) != root) call.send(call.after(i), payload::results, block, call.output(own[block]));
  }
  co_await until([&] { return call.all_transfers_done(); });
}

/// Copies the own part to its place, unless it is there already.
void copy_own(std::span<const std::byte> from, std::span<std::byte> to) {
  if (to.data() != from.data()) copy_bytes(from.data(), to.data(), from.size(), store_kind::cached);
}

}  // namespace

algorithm broadcast(net_call call) {
  if (call.num_members() == 1) co_return;
  call.announce_to_next();
  auto chosen =
      call.whole_bytes() <= call.sizes().whole_broadcast ? broadcast_small(call) : broadcast_large(call);
  co_await finished(chosen);
  auto arrival = dissemination(call);
  co_await finished(arrival);
}

algorithm all_gather(net_call call) {
  auto own = call.operation().input.bytes();
  for (int i = 1; i < call.num_members(); ++i) {
    auto from = call.after(call.num_members() - i);
    call.receive(from, payload::inputs, 0, call.output(part_of(call.operation(), from)));
  }
  for (int i = 1; i < call.num_members(); ++i) call.send(call.after(i), payload::inputs, 0, own);
  copy_own(own, call.output(part_of(call.operation(), call.member())));
  co_await until([&] { return call.all_transfers_done(); });
}

algorithm gather(net_call call) {
  call.announce_to_next();
  auto root = call.operation().signature.root;
  auto own = call.operation().input.bytes();
  if (call.member() != root) {
    call.send(root, payload::inputs, 0, own);
  } else {
    for (int i = 1; i < call.num_members(); ++i)
      call.receive(call.after(i), payload::inputs, 0, call.output(part_of(call.operation(), call.after(i))));
    copy_own(own, call.output(part_of(call.operation(), root)));
  }
  co_await until([&] { return call.all_transfers_done(); });
  auto arrival = dissemination(call);
  co_await finished(arrival);
}

algorithm scatter(net_call call) {
  call.announce_to_next();
  auto root = call.operation().signature.root;
  auto place = call.output({0, call.operation().parts[static_cast<std::size_t>(call.member())]});
  if (call.member() != root) {
    call.receive(root, payload::inputs, 0, place);
  } else {
    for (int i = 1; i < call.num_members(); ++i)
      call.send(call.after(i), payload::inputs, 0, call.input(part_of(call.operation(), call.after(i))));
    copy_own(call.input(part_of(call.operation(), root)), place);
  }
  co_await until([&] { return call.all_transfers_done(); });
  auto arrival = dissemination(call);
  co_await finished(arrival);
}

algorithm all_to_all(net_call call) {
  for (int i = 1; i < call.num_members(); ++i) {
    auto from = call.after(call.num_members() - i);
    call.receive(from, payload::inputs, 0, call.output(part_of(call.operation(), from)));
  }
  for (int i = 1; i < call.num_members(); ++i)
    call.send(call.after(i), payload::inputs, 0, call.input(part_of(call.operation(), call.after(i))));
  auto own = part_of(call.operation(), call.member());
  auto bytes = call.input(own);
  copy_bytes(bytes.data(), call.output(own).data(), bytes.size(), store_kind::cached);
  co_await until([&] { return call.all_transfers_done(); });
}

// Dissemination (Hensgen, Finkel, Manber 1988): in round k each member sends an empty message to the member
// 2^k after it. After ceil(log2 n) rounds a message has reached it, directly or through others, from all
// members.
algorithm dissemination(net_call& call) {
  std::uint32_t round = 0;
  for (int distance = 1; distance < call.num_members(); distance *= 2, ++round) {
    call.send(call.after(distance), payload::arrivals, round, {});
    call.receive(call.after(call.num_members() - distance), payload::arrivals, round, {});
    co_await until([&] { return call.all_transfers_done(); });
  }
}

algorithm barrier(net_call call) {
  auto arrival = dissemination(call);
  co_await finished(arrival);
}

algorithm send(net_call call) {
  call.send(call.operation().peer, payload::inputs, 0, call.operation().input.bytes());
  co_await until([&] { return call.all_transfers_done(); });
}

algorithm receive(net_call call) {
  call.receive(call.operation().peer, payload::inputs, 0, call.output({0, call.operation().signature.count}));
  co_await until([&] { return call.all_transfers_done(); });
}

}  // namespace troupe::collective::net
