#pragma once
#include <cstddef>
#include <cstdint>

namespace troupe::detail {

/// A hash of what a member has begun so far, in order: gathers of units and sums of flats. Equal on all
/// members if they do the same.
class call_order {
 public:
  void note_gather(std::size_t unit) { note(2 * unit); }
  void note_sum(std::size_t flat) { note(2 * flat + 1); }
  std::uint64_t hash() const { return hash_; }

 private:
  /// FNV-1a, by words.
  void note(std::uint64_t what) {
    constexpr std::uint64_t prime = 1099511628211;
    hash_ = (hash_ ^ (what + 1)) * prime;
  }

  std::uint64_t hash_ = 14695981039346656037U;
};

}  // namespace troupe::detail
