#include "troupe/posix/core_wait.hpp"

#include <sched.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <thread>

using namespace troupe;
using namespace troupe::posix;
using namespace std::chrono_literals;

namespace {

/// This thread runs on this core only.
bool keep_to_core(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return ::sched_setaffinity(0, sizeof one, &one) == 0;
}

}  // namespace

TEST_CASE("threads that share a core wait for it") {
  if (!std::filesystem::exists("/proc/self/task/" + std::to_string(::gettid()) + "/schedstat"))
    SKIP("this kernel does not count how long threads wait for a core");
  core_wait waits;
  CHECK(waits.total_ns() == 0);  // counted from here on
  auto core = ::sched_getcpu();
  std::jthread other([core](const std::stop_token& stop) {
    while (keep_to_core(core) && !stop.stop_requested()) {
    }
  });
  std::uint64_t waited_ns = 0;
  bool never_falls = true;
  std::jthread([&] {
    auto end = std::chrono::steady_clock::now() + 60s;
    while (keep_to_core(core) && waited_ns < 10'000'000 && std::chrono::steady_clock::now() < end) {
      auto now_ns = waits.total_ns();
      never_falls = never_falls && now_ns >= waited_ns;
      waited_ns = now_ns;
    }
  }).join();
  CHECK(never_falls);
  CHECK(waited_ns >= 10'000'000);
}
