#pragma once
#include <cstddef>
#include <functional>
#include <vector>

namespace troupe::placement {

/// Pieces [begin, end) on a device of a kind.
struct found_chunk {
  std::size_t begin = 0, end = 0;
  std::size_t kind = 0;
};

/// What chunks cost. `position`: the number of chunks before it.
struct search_costs {
  /// Must not decrease as `end` grows. Infinity: not possible.
  std::function<double(std::size_t begin, std::size_t end, std::size_t kind, std::size_t position)> cost;
  /// [num_pieces + 1] What the pieces before each one amount to, in units of which a chunk's are the sum.
  std::vector<double> amount_before;
  /// The largest amount of which a chunk on a device of this kind may cost no more than `cost`.
  std::function<double(std::size_t kind, double cost)> capacity;
  /// Where the search for the least cost begins, and its first step, above 0.
  double start = 0;
  double step = 1;
};

/// Whether the tables of such a search fit into memory, and are searched in some tens of seconds.
bool can_search(const std::vector<std::size_t>& devices_of_kind, std::size_t num_pieces);

/// Cuts pieces, in order, into one chunk for each of several devices, so that the largest cost is minimal. Of
/// several answers it takes one in which the smallest share of a device (a chunk's amount for the capacity of
/// cost 1) is as large as it can be; of these always the same. Empty if none has a finite cost.
std::vector<found_chunk> least_bottleneck(const std::vector<std::size_t>& devices_of_kind,
                                          std::size_t num_pieces, const search_costs& costs);

}  // namespace troupe::placement
