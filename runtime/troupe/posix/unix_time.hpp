#pragma once
#include <chrono>
#include <cstdint>

namespace troupe::posix {

/// Milliseconds of Unix time.
inline std::int64_t unix_now_ms() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
}

}  // namespace troupe::posix
