#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::transport {

/// Allocates the tensors into which small tensors are received. When two in a row have the same layout, the
/// next one is allocated ahead, in idle time. Not thread-safe.
class arrival_buffer_cache {
 public:
  /// Sets `into` to a tensor of the encoded `layout` (tensor_header.hpp). False if the layout is invalid or
  /// its size is not `body_bytes`. Throws std::bad_alloc.
  bool take(std::span<const std::byte> layout, std::size_t body_bytes, tensor& into);
  /// Allocates ahead if that is due. Call it in idle time.
  void prepare() {
    if (state_ == state::wanted) make();
  }

 private:
  bool is_like_last(std::span<const std::byte> layout, std::size_t body_bytes) const;
  void make();

  std::vector<std::byte> layout_;  ///< layout of the newest tensor
  std::size_t body_bytes_ = 0;
  /// wanted: the last two layouts were equal, allocate at the next prepare().
  enum class state : std::uint8_t { none, wanted, ready } state_ = state::none;
  tensor ready_;
};

}  // namespace troupe::transport
