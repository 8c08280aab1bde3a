#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Room for small tensors that arrive. When one came like the one before, room for a third is made before
/// that comes, so that nobody waits for it. Not thread-safe.
class arrival_room {
 public:
  /// Makes `into` a tensor with a layout of a tensor's header. False if there is no such layout, or not of
  /// `body_bytes` bytes. Throws std::bad_alloc.
  bool take(std::span<const std::byte> layout, std::size_t body_bytes, tensor& into);
  /// To be called while there is nothing to do, as often as one likes.
  void prepare() {
    if (state_ == state::wanted) make();
  }

 private:
  bool is_like_last(std::span<const std::byte> layout, std::size_t body_bytes) const;
  void make();

  std::vector<std::byte> layout_;  ///< of the last one
  std::size_t body_bytes_ = 0;
  /// Wanted: two of a kind came.
  enum class state : std::uint8_t { none, wanted, ready } state_ = state::none;
  tensor ready_;
};

}  // namespace troupe
