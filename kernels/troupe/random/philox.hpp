#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace troupe {

using philox_counter = std::array<std::uint32_t, 4>;
using philox_key = std::array<std::uint32_t, 2>;

/// Philox4x32-10: four random words that are a pure function of counter and key (Salmon, Moraes, Dror,
/// Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3).
philox_counter philox4x32(philox_counter counter, philox_key key);

/// The purpose of random numbers. Each purpose has its own keys, so that streams of different purposes are
/// independent. The values decide results: never change them.
enum class random_purpose : std::uint32_t {
  initial_weights = 1,
  permutation = 2,
  activations = 3,
  sampling = 4
};

/// A stream of random words, identified by seed, purpose and three words (`place`) whose meaning depends on
/// the purpose:
/// - activations: (step, global microbatch, layer index in the whole model)
/// - initial weights: the hash of the parameter's name
/// - a permutation: the stream number
///
/// Word `i` of the stream is word i % 4 of block i / 4.
class philox_stream {
 public:
  philox_stream(std::uint64_t seed, random_purpose purpose, std::array<std::uint32_t, 3> place);

  /// Words [4 * index, 4 * index + 4).
  philox_counter block(std::uint32_t index) const {
    return philox4x32({place_[0], place_[1], place_[2], index}, key_);
  }

  // Key and counter words, for code that computes many blocks at a time.
  const philox_key& key() const { return key_; }
  const std::array<std::uint32_t, 3>& place() const { return place_; }

 private:
  philox_key key_;
  std::array<std::uint32_t, 3> place_;
};

/// FNV-1a, 64 bits: converts a name to counter words.
std::uint64_t hash_of_name(std::string_view name);

}  // namespace troupe
