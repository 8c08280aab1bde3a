#include "troupe/collective/network/algorithms.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::network {

algorithm scatter(conversation at) {
  at.introduce();
  auto root = at.what().signature.root;
  auto place = at.output({0, at.what().parts[static_cast<std::size_t>(at.member())]});
  if (at.member() != root) {
    at.receive(root, carried::inputs, 0, place);
  } else {
    for (int i = 1; i < at.num_members(); ++i)
      at.send(at.after(i), carried::inputs, 0, at.input(part_of(at.what(), at.after(i))));
    auto own = at.input(part_of(at.what(), root));
    if (place.data() != own.data()) copy_bytes(own.data(), place.data(), own.size(), store_kind::cached);
  }
  co_await until([&] { return at.all_done(); });
  auto arrivals = everyone_has_come(at);
  co_await finished(arrivals);
}

}  // namespace troupe::network
