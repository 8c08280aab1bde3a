#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// What a frame carries: a Cereal control message, or a tensor (its tag in the header extension).
enum class frame_kind : std::uint8_t { control = 1, tensor = 2 };

constexpr std::uint8_t frame_version = 1;
constexpr std::size_t authentication_code_bytes = 16;

/// Fixed fields at the head of every frame, little-endian on the wire.
struct frame_header {
  frame_kind kind = frame_kind::control;
  std::uint32_t from_rank = 0;
  std::uint64_t generation = 0;
  std::uint64_t sequence = 0;     ///< per sender, receiver and plane: rises by one
  std::uint64_t body_bytes = 0;
};

}  // namespace troupe
