#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::bench {

/// Microseconds of each repeat, by size.
using peer_times = std::map<std::int64_t, std::vector<double>>;

/// The same operation with Open MPI, as our own is measured; waiting yields where there are more ranks than
/// cores. Nothing if it is not installed, or this program was built without it.
std::optional<peer_times> open_mpi_times(const std::string& operation, int ranks, bool yields,
                                         const std::vector<std::int64_t>& sizes_bytes, int repeats);

}  // namespace troupe::bench
