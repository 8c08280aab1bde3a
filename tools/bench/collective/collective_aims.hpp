#pragma once
#include <string>
#include <vector>

#include "bench/collective/collective_summary.hpp"

namespace troupe::bench {

/// What all_reduce between processes of one host is meant to reach, and whether it did.
struct collective_aim {
  std::string what;     ///< "own/memcpy", "Gloo/own", "Open MPI/own", "own/Open MPI"
  bool at_most = true;  ///< the limit is the most, or the least
  double limit = 0;
  double value = 0;  ///< the median
  bool is_met() const { return at_most ? value <= limit : value >= limit; }
};

struct measured_group {
  std::string operation, backend;
  int ranks = 0, cores = 0;
};

/// Why nothing is judged: empty if it is. Fewer cores than four, or than ranks, measure the machine, unless
/// there are just twice as many ranks as cores.
std::string why_no_verdict(const measured_group& group);

/// For the sizes that have aims: at most 1.5 times memcpy, at least 4 times as fast as Gloo and Open MPI for
/// 1 to 4 MiB and twice up to 64 MiB; 8 bytes in at most 1.2 times Open MPI's time, or twice if ranks share
/// cores.
std::vector<collective_aim> aims_of(const measured_group& group, std::int64_t size_bytes,
                                    const collective_summary& measured);

}  // namespace troupe::bench
