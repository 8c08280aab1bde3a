#pragma once
#include <string>

namespace troupe::bench {

/// The path of this very program.
std::string this_program();

}  // namespace troupe::bench
