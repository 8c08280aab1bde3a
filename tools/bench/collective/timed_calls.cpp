#include "bench/collective/timed_calls.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

namespace troupe::bench {
namespace {

using clock = std::chrono::steady_clock;

double us_since(clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

}  // namespace

int calls_for(std::int64_t size_bytes) {
  constexpr std::int64_t bytes_to_move = std::int64_t{48} << 20;
  return static_cast<int>(std::clamp<std::int64_t>(bytes_to_move / size_bytes, 2, 1000));
}

double time_calls(const rank_sync& sync, const timed_calls& calls, const std::function<void()>& call) {
  call();
  sync.barrier();
  double us = 0;
  if (calls.rewrite) {
    for (int i = 0; i < calls.count; ++i) {
      calls.rewrite();
      sync.barrier();
      auto begin = clock::now();
      call();
      us += us_since(begin);
    }
  } else {
    auto begin = clock::now();
    for (int i = 0; i < calls.count; ++i) call();
    us = us_since(begin);
  }
  return sync.max(us / calls.count);
}

double core_probe::measure(const rank_sync& sync) {
  constexpr int attempts = 8;
  double least = std::numeric_limits<double>::infinity();  // others on this core make one late, not all
  for (int i = 0; i < attempts; ++i) {
    std::fill_n(own_, size_bytes, static_cast<std::byte>(i));
    sync.barrier();
    auto begin = clock::now();
    std::memcpy(copy_.data(), next_, size_bytes);
    least = std::min(least, us_since(begin));
    sync.barrier();  // before they write again
  }
  return sync.max(least);
}

}  // namespace troupe::bench
