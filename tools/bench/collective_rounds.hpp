#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "troupe/collective/communicator.hpp"

namespace troupe::bench {

/// What is measured of one operation with tensors of one size.
struct collective_round {
  std::string operation;        ///< all_reduce, all_gather, reduce_scatter or p2p
  std::int64_t size_bytes = 8;  ///< of the whole tensor; a multiple of 4
  int repeats = 5;              ///< how often all that is compared is measured in turn
};

/// One value for each repeat, in microseconds: the mean time of a call, on the member that took longest.
struct collective_times {
  std::vector<double> floor;    ///< each member copies as many bytes with memcpy, all at once
  std::vector<double> own;      ///< tensors from communicator::allocate
  std::vector<double> foreign;  ///< other tensors
};

/// Every member of `group` calls this alike. p2p goes to and fro between members 0 and 1, and is half of a
/// round trip.
collective_times measure_round(communicator& group, const collective_round& what);

/// How many calls one measurement is made of.
int calls_for(std::int64_t size_bytes);

}  // namespace troupe::bench
