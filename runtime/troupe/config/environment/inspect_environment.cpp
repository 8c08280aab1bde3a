#include "troupe/config/environment/inspect_environment.hpp"

namespace troupe::config {

inspect_environment read_inspect_environment(const environment_reader& read) {
  return {read("TROUPE_INSPECT_URL").value_or(""), read("TROUPE_INSPECT_TOKEN").value_or("")};
}

}  // namespace troupe::config
