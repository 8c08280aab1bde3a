#include "troupe/collective/network/share_reduction.hpp"

namespace troupe::network {

// Member i reduces part i, which all send to it.
algorithm reduce_scatter(conversation at) {
  at.introduce();
  std::vector<share> parts;
  for (int i = 0; i < at.num_members(); ++i) parts.push_back(part_of(at.what(), i));
  auto own_count = parts[static_cast<std::size_t>(at.member())].count;
  auto part = reduce_shares(at, parts, at.output({0, own_count}).data(), nullptr);
  co_await finished(part);
  co_await until([&] { return at.all_done(); });
}

}  // namespace troupe::network
