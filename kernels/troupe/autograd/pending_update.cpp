// Separate from parameter.cpp, so that programs that only read parameters do not link the operations.
#include <stdexcept>
#include <string>

#include "troupe/autograd/parameter.hpp"

namespace troupe {
namespace {

thread_local int num_scopes = 0;
thread_local std::uint64_t newest_operation = 0;

}  // namespace

values_read_together::values_read_together() {
  if (num_scopes++ == 0) ++newest_operation;
}

values_read_together::~values_read_together() { --num_scopes; }

std::uint64_t values_read_together::current() {
  return num_scopes > 0 ? newest_operation : ++newest_operation;
}

void parameter::throw_pending() const {
  throw std::logic_error(
      "[parameter] expected " + name + to_string(extents) +
      " without a pending update, got one whose gradient is being reduced or whose step is "
      "still to come: call synchronize() on the optimizer, or wait_ready() on the parameter, "
      "before reading it");
}

}  // namespace troupe
