#include "troupe/usage/version.hpp"

namespace troupe::usage {

std::string version_text() {
  constexpr const char* commit =
#include "commit.inc"
      ;
  return std::string(TROUPE_VERSION) + " (commit " + commit + ")";
}

}  // namespace troupe::usage
