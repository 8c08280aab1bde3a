#pragma once
#include <string>
#include <vector>

namespace troupe {

/// Who belongs to a group. Members are numbered 0 to n-1 in the order of `ranks`; errors name ranks.
struct group_description {
  std::string name = "default";
  std::vector<int> ranks;  ///< in the world, by member, distinct
  int member = 0;          ///< this process's own number
  int size() const { return static_cast<int>(ranks.size()); }
};

}  // namespace troupe
