#pragma once
#include <string>

namespace troupe::testing {

/// How often `part` is in `text`.
inline int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace troupe::testing
