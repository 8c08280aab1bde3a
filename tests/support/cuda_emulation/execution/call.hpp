#pragma once
#include <source_location>

namespace troupe::emulation {

/// A call of a function of the device language, with its place in the source.
struct call {
  const char* function = "";
  std::source_location site;
};

/// Whether two calls are of one function at one place in the source, as for threads that synchronize.
bool is_same(const call& a, const call& b);

}  // namespace troupe::emulation
