#pragma once
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "support/processes/spawn_ranks.hpp"
#include "support/temp_folder.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::testing {

/// The group of all processes of a test, for this process.
inline group_description world_group(const test_rank& self, std::string name = "all") {
  group_description group{std::move(name), std::vector<world_rank>(static_cast<std::size_t>(self.size())),
                          self.rank()};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

/// Runs `body` in `count` processes that have a group over `ucx`.
inline void with_ucx_group(int count, const collective::network_options& network,
                           const std::function<void(communicator&, test_rank&)>& body) {
  temp_folder folder;
  auto in_rank = [&](test_rank& self) {
    collective::folder_store place(folder.path());
    collective::ucx_group_resources resources("token", network);
    auto group = make_ucx_group(world_group(self), place, resources);
    body(*group, self);
  };
  spawn_ranks(count, in_rank, std::chrono::seconds(300));
}

}  // namespace troupe::testing
