#pragma once
#include <source_location>

namespace troupe::emulation {

/// A function of the device language that a thread has called, and where.
struct call {
  const char* function = "";
  std::source_location site;
};

/// Of one function at one place in the source: what the threads of a warp or of a block must reach together.
bool is_same(const call& a, const call& b);

}  // namespace troupe::emulation
