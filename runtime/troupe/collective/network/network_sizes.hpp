#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace troupe {

/// Which algorithm a call over the network takes, by its size. The same on all members of a group.
struct network_sizes {
  /// Up to these bytes, sent by one member to all others, an all_reduce or reduce sends whole inputs, to be
  /// there after one message; beyond, shares of them, twice. Between hosts of several members the bytes of
  /// the call, for reduce_scatter and all_gather too.
  std::size_t whole_inputs = 32768;
  /// Up to these bytes a broadcast goes down a binomial tree; beyond, the root sends shares that the others
  /// pass on to each other.
  std::size_t whole_broadcast = 65536;
  /// Bytes of a message of a share: small enough to be reduced, or passed on, while the next is under way.
  std::size_t block = std::size_t{1} << 19;
  /// Blocks from each member that are awaited at a time; each costs its memory.
  int blocks_ahead = 3;
};

/// From "whole_inputs=64K,block=1M": those that are named, the others as they are above. Throws bad_input for
/// other names, and for sizes that are none or of no use.
network_sizes network_sizes_from(std::string_view text);
/// All of them, in that form.
std::string to_string(const network_sizes& sizes);

}  // namespace troupe
