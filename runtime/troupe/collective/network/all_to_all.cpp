#include "troupe/collective/network/algorithms.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::network {

// Each pair by itself, neighbours first.
algorithm all_to_all(conversation at) {
  for (int i = 1; i < at.num_members(); ++i) {
    auto from = at.after(at.num_members() - i);
    at.receive(from, carried::inputs, 0, at.output(part_of(at.what(), from)));
  }
  for (int i = 1; i < at.num_members(); ++i)
    at.send(at.after(i), carried::inputs, 0, at.input(part_of(at.what(), at.after(i))));
  auto own = part_of(at.what(), at.member());
  auto bytes = at.input(own);
  copy_bytes(bytes.data(), at.output(own).data(), bytes.size(), store_kind::cached);
  co_await until([&] { return at.all_done(); });
}

}  // namespace troupe::network
