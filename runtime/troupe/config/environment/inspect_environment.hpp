#pragma once
#include <string>

#include "troupe/config/environment/launch_environment.hpp"

namespace troupe::config {

/// Which inspector `troupe inspect` asks when it is not told.
struct inspect_environment {
  std::string url;    ///< TROUPE_INSPECT_URL; empty: not set
  std::string token;  ///< TROUPE_INSPECT_TOKEN; empty: not set
};
inspect_environment read_inspect_environment(const environment_reader& read);

}  // namespace troupe::config
