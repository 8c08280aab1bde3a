#pragma once
#include <string>

namespace troupe::usage {

/// Flushes standard output, and says what is wrong if not all that was printed has reached it; empty if all
/// has.
std::string output_problem();

}  // namespace troupe::usage
