#pragma once
#include <string>
#include <vector>

namespace troupe {

/// The members of a group. They have indices 0 to n-1, in the order of `ranks`. Errors name ranks.
struct group_description {
  std::string name = "default";
  std::vector<int> ranks;  ///< in the world, by member index; distinct
  int member = 0;          ///< this process's member index
  int size() const { return static_cast<int>(ranks.size()); }
};

}  // namespace troupe
