#include "troupe/collective/network/algorithms.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::network {

algorithm gather(conversation at) {
  at.introduce();
  auto root = at.what().signature.root;
  auto own = at.what().input.bytes();
  if (at.member() != root) {
    at.send(root, carried::inputs, 0, own);
  } else {
    for (int i = 1; i < at.num_members(); ++i)
      at.receive(at.after(i), carried::inputs, 0, at.output(part_of(at.what(), at.after(i))));
    auto place = at.output(part_of(at.what(), root));
    if (place.data() != own.data()) copy_bytes(own.data(), place.data(), own.size(), store_kind::cached);
  }
  co_await until([&] { return at.all_done(); });
  auto arrivals = everyone_has_come(at);
  co_await finished(arrivals);
}

}  // namespace troupe::network
