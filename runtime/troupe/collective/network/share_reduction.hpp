#pragma once
#include <functional>
#include <vector>

#include "troupe/collective/network/algorithms.hpp"

namespace troupe::network {

/// What is done with a block of the own share when it is reduced.
using block_hook = std::function<void(std::uint32_t block, std::span<const std::byte> reduced)>;

/// Member i reduces shares[i] of all inputs: everybody sends it theirs, in blocks, and it reduces one while
/// the next are under way. `result`: where the own share is reduced to, which may be its place in the own
/// input. When it is done, own messages may still be under way.
algorithm reduce_shares(conversation& at, std::vector<share> shares, std::byte* result,
                        block_hook on_reduced);

/// Reduces whole inputs of all: the own one and those `received` of the others, in order of the members.
void reduce_whole(const conversation& at, std::span<const std::byte> received);

}  // namespace troupe::network
