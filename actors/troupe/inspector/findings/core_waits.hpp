#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "troupe/inspector/views/job_view.hpp"

namespace troupe::actors::inspector {

/// How many threads of each process wait for a core, now and usually. A device that is slow since others have
/// taken its cores is not at fault, unless that stays so. Not thread-safe.
class core_waits {
 public:
  static constexpr std::size_t most_kept = 64;  ///< reports of a process: 16 s and more

  /// Call it with views in the order of their time.
  void observe(const job_view& view);
  /// Threads of this process that waited for a core, on average over the time since `since_ms` (Unix time),
  /// as far back as is known; 0: not known.
  double mean_since(int rank, std::int64_t since_ms) const;
  /// The same over about the last 20 s.
  double usual(int rank) const;

 private:
  struct report {
    std::int64_t at_ms = 0;
    std::uint64_t total_ns = 0;
  };
  struct process {
    std::uint32_t incarnation = 0;
    std::deque<report> reports;  ///< ascending
    double usual = 0;
  };
  static double mean_between(const report& first, const report& last);

  std::map<int, process> processes_;
};

}  // namespace troupe::actors::inspector
