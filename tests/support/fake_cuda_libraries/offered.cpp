#include "support/fake_cuda_libraries/offered.hpp"

#include "troupe/config/environment/launch_environment.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::testing {

bool libraries_are_offered() {
  auto value = process_environment()("TROUPE_EMULATED_LIBRARIES").value_or("all");
  if (value != "all" && value != "none")
    throw bad_input("TROUPE_EMULATED_LIBRARIES: expected all or none, got \"" + value + "\"");
  return value == "all";
}

}  // namespace troupe::testing
