#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace troupe::bench {

/// How processes that are measured together meet, over whatever they are connected by.
struct meeting_members {
  std::function<void()> barrier = nullptr;
  std::function<double(double)> slowest = nullptr;  ///< the largest of what the members give
};

struct timed_calls {
  int count = 1;
  /// Done by each member before each call, and not timed; null: the calls follow one another.
  std::function<void()> rewrite = nullptr;
};

/// How often a call with so many bytes is made to be measured once.
int calls_for(std::int64_t size_bytes);

/// The mean time of a call in microseconds, on the member that took longest, after one call that does not
/// count. All members do this alike.
double time_calls(const meeting_members& members, const timed_calls& calls,
                  const std::function<void()>& once);

/// How fast a core reads what another one has just written: this jumps where a machine's cores are moved
/// about below it (virtual ones), and everything between processes with it.
class core_probe {
 public:
  static constexpr std::size_t size_bytes = 256 << 10;

  /// The parts of this member and of the next one, in memory that both share, which outlives this.
  core_probe(std::byte* own, const std::byte* next) : own_(own), next_(next), copy_(size_bytes) {}
  /// Each member writes its part, then copies the next one's: microseconds of its best copy, on the slowest.
  double measure(const meeting_members& members);

 private:
  std::byte* own_;
  const std::byte* next_;
  std::vector<std::byte> copy_;
};

}  // namespace troupe::bench
