#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace troupe::collective {

/// The sizes that decide which algorithm a call over the network takes (net/algorithms.hpp). The same on all
/// members of a group.
struct network_sizes {
  /// Bytes that one member sends to all others up to which all_reduce and reduce send whole inputs, in one
  /// round. Beyond, they send ranges, in two rounds. In a group with several members on a host: the bytes of
  /// the call, and for reduce_scatter and all_gather too (hierarchy/algorithms.hpp).
  std::size_t whole_inputs = 32768;
  /// Bytes up to which broadcast uses a binomial tree. Beyond, the root sends ranges, which the others
  /// forward to each other.
  std::size_t whole_broadcast = 65536;
  /// Bytes of one message of a range. Smaller blocks overlap reduction and transfer better, larger ones have
  /// less overhead.
  std::size_t block = std::size_t{1} << 19;
  /// Blocks from each member that are received at a time. Each needs memory of its size.
  int blocks_ahead = 3;
};

/// Parses "whole_inputs=64K,block=1M"; sizes that are not named keep their defaults. Throws bad_input for
/// unknown names, and for sizes that are not numbers or out of range.
network_sizes network_sizes_from(std::string_view text);
/// All sizes, in that form.
std::string to_string(const network_sizes& sizes);

}  // namespace troupe::collective
