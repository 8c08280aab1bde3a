#pragma once
#include <array>
#include <cstdint>

#include "troupe/random/philox.hpp"

namespace troupe::cpu {

/// Writes the words of blocks [first, first + count) of the stream of this key and place to `words`: the same
/// as philox_stream::block, many blocks at a time.
void philox_blocks(const philox_key& key, const std::array<std::uint32_t, 3>& place, std::uint32_t first,
                   std::int64_t count, std::uint32_t* words);

}  // namespace troupe::cpu
