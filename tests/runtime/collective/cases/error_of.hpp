#pragma once
#include <functional>
#include <stdexcept>

#include "support/processes/spawn_ranks.hpp"
#include "troupe/collective/calls/collective_error.hpp"

namespace troupe::testing {

/// What `body` throws; it is expected to fail.
inline collective_error error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const collective_error& error) {
    return error;
  }
  expect(false, "a failure of the group");
  throw std::logic_error("not reached");
}

}  // namespace troupe::testing
