#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::cpu {

/// Rounds to nearest and keeps denormal numbers while it lives, whatever other libraries have set on this
/// thread; restores their setting at the end.
class default_rounding {
 public:
#if defined(__x86_64__)
  default_rounding() : before_(_mm_getcsr()) { _mm_setcsr(0x1f80); }  // all exceptions masked
  ~default_rounding() { _mm_setcsr(before_); }

 private:
  unsigned before_;

 public:
#else
  default_rounding() = default;
#endif
  default_rounding(const default_rounding&) = delete;
  default_rounding& operator=(const default_rounding&) = delete;
};

}  // namespace troupe::cpu
