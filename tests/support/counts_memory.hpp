#pragma once

namespace troupe::testing {

/// Whether the memory of a process says what it holds: the allocator of a sanitizer keeps what was freed.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool counts_memory = false;
#else
constexpr bool counts_memory = true;
#endif

}  // namespace troupe::testing
