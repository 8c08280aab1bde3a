#pragma once
#include <numeric>
#include <string>
#include <vector>

#include "support/processes/spawn_ranks.hpp"
#include "troupe/collective/calls/group.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::testing {

/// The group of all ranks.
inline group_description world_group(const test_rank& self) {
  group_description group{"all", std::vector<world_rank>(static_cast<std::size_t>(self.size())), self.rank()};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

/// For files in which ranks leave what they have.
inline std::string bytes_of(const tensor& value) {
  auto bytes = value.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace troupe::testing
