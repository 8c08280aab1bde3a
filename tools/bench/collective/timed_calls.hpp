#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::bench {

/// How the processes that measure together synchronize, over whatever connects them.
struct rank_sync {
  std::function<void()> barrier = nullptr;
  std::function<double(double)> max = nullptr;  ///< the largest of the members' values
};

struct timed_calls {
  int count = 1;
  /// Done by each member before each call, and not timed; null: the calls follow one another.
  std::function<void()> rewrite = nullptr;
};

/// How many calls with so many bytes make one measurement.
int calls_for(std::int64_t size_bytes);

/// The mean time of `call` in microseconds, on the slowest member, after one call that does not count. All
/// members do this alike.
double time_calls(const rank_sync& sync, const timed_calls& calls, const std::function<void()>& call);

/// How fast a core reads what another one has just written. Where a machine's (virtual) cores are moved about
/// this time jumps, and the time of everything between processes with it.
class core_probe {
 public:
  static constexpr std::size_t size_bytes = 256 << 10;

  /// The parts of this member and of the next one, in memory that both share and that outlives this.
  core_probe(std::byte* own, const std::byte* next) : own_(own), next_(next), copy_(size_bytes) {}
  /// Each member writes its part, then copies the next one's: microseconds of its best copy, on the slowest.
  double measure(const rank_sync& sync);

 private:
  std::byte* own_;
  const std::byte* next_;
  std::vector<std::byte> copy_;
};

}  // namespace troupe::bench
