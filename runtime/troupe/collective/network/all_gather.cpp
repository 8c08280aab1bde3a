#include "troupe/collective/network/algorithms.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::network {

// Everybody sends its part to everybody, beginning with its neighbour, so that not all send to one.
algorithm all_gather(conversation at) {
  auto own = at.what().input.bytes();
  for (int i = 1; i < at.num_members(); ++i) {
    auto from = at.after(at.num_members() - i);
    at.receive(from, carried::inputs, 0, at.output(part_of(at.what(), from)));
  }
  for (int i = 1; i < at.num_members(); ++i) at.send(at.after(i), carried::inputs, 0, own);
  auto place = at.output(part_of(at.what(), at.member()));
  if (place.data() != own.data()) copy_bytes(own.data(), place.data(), own.size(), store_kind::cached);
  co_await until([&] { return at.all_done(); });
}

}  // namespace troupe::network
