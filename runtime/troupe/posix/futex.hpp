#pragma once
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

namespace troupe::posix {

/// Sleeps until futex_wake() for this word, which may be in memory of several processes; or until `at_most`
/// has passed. Returns at once if the word is not `known`.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t known,
                       std::chrono::microseconds at_most) {
  timespec time{at_most.count() / 1'000'000, at_most.count() % 1'000'000 * 1000};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, known, &time, nullptr, 0);
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int most = INT_MAX) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, most, nullptr, nullptr, 0);
}

}  // namespace troupe::posix
