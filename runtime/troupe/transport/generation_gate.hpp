#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::transport {

/// The generation a transport is in, and whether its data plane is connected. One thread at a time changes
/// it, any thread reads it.
class generation_gate {
 public:
  std::uint64_t current() const { return state_ >> 1; }
  bool is_open() const { return (state_ & 1) != 0; }

  /// Throws std::invalid_argument unless the generation rises; the first may be 0.
  void begin(std::uint64_t generation) {
    if (generation < current() || (generation == current() && generation != 0))
      throw_invalid("transport::begin_generation", "a generation above " + std::to_string(current()),
                    std::to_string(generation));
    state_ = generation << 1;
  }
  /// A process that joins begins before it knows the generation it will join in: `generation` may be later.
  /// Throws std::invalid_argument if it is earlier than what was begun last.
  void open(std::uint64_t generation) {
    if (generation < current())
      throw_invalid("transport::connect",
                    "the generation begun last, " + std::to_string(current()) + ", or a later one",
                    std::to_string(generation));
    state_ = (generation << 1) | 1;
  }

 private:
  std::atomic<std::uint64_t> state_ = 0;  ///< the generation, and whether it is connected in the lowest bit
};

}  // namespace troupe::transport
