#pragma once
#include <string>
#include <vector>

namespace troupe::testing {

/// Those of a command line.
using words = std::vector<std::string>;

/// Both, one behind the other.
inline words join(words first, const words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace troupe::testing
