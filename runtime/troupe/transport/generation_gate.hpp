#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

/// The generation a transport is in, and whether its data plane is connected. One thread at a time changes
/// it, any thread reads it.
class generation_gate {
 public:
  std::uint64_t current() const { return state_ >> 1; }
  bool is_open() const { return (state_ & 1) != 0; }

  /// Throws std::invalid_argument unless the generation rises.
  void begin(std::uint64_t generation) {
    if (generation <= current())
      throw_invalid("transport::begin_generation", "a generation above " + std::to_string(current()),
                    std::to_string(generation));
    state_ = generation << 1;
  }
  /// Throws std::invalid_argument unless `generation` was begun last.
  void open(std::uint64_t generation) {
    if (generation != current())
      throw_invalid("transport::connect", "the generation begun last, " + std::to_string(current()),
                    std::to_string(generation));
    state_ = (generation << 1) | 1;
  }

 private:
  std::atomic<std::uint64_t> state_ = 0;  ///< the generation, and whether it is connected in the lowest bit
};

}  // namespace troupe
