#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/collective/collective_sample.hpp"
#include "bench/collective/collective_summary.hpp"
#include "bench/measure/machine.hpp"

namespace troupe::bench {

struct measured_group {
  std::string operation, backend;
  int ranks = 0, cores = 0;
};

/// All that was measured of one operation.
struct collective_report {
  machine where;
  measured_group group;
  bool fresh = false;
  std::map<std::int64_t, std::vector<collective_sample>> samples;  ///< by size
  std::string no_gloo, no_open_mpi;                                ///< why not; empty: measured

  void print_table() const;
  /// An object for each size.
  void print_json() const;
};

}  // namespace troupe::bench
