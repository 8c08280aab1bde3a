#include "troupe/transport/data_plane/arrival_buffer_cache.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "troupe/transport/tensor_header.hpp"

namespace troupe::transport {
namespace {

bool free_space(std::span<const std::byte> layout, std::size_t body_bytes, tensor& into) {
  auto decoded = decode_layout(layout, body_bytes);
  if (decoded) into = tensor::empty(std::move(decoded->extents), decoded->type);
  return decoded.has_value();
}

}  // namespace

bool arrival_buffer_cache::is_like_last(std::span<const std::byte> layout, std::size_t body_bytes) const {
  return body_bytes == body_bytes_ && layout.size() == layout_.size() &&
         std::memcmp(layout.data(), layout_.data(), layout.size()) == 0;
}

bool arrival_buffer_cache::take(std::span<const std::byte> layout, std::size_t body_bytes, tensor& into) {
  if (is_like_last(layout, body_bytes)) {
    if (std::exchange(state_, state::wanted) != state::ready) return free_space(layout, body_bytes, into);
    into = std::move(ready_);
    return true;
  }
  if (!free_space(layout, body_bytes, into)) return false;
  layout_.assign(layout.begin(), layout.end());
  body_bytes_ = body_bytes;
  ready_ = {};
  state_ = state::none;
  return true;
}

void arrival_buffer_cache::make() {
  state_ = state::none;
  try {
    if (free_space(layout_, body_bytes_, ready_)) state_ = state::ready;
  } catch (const std::bad_alloc&) {  // take() tries again when the tensor arrives
  }
}

}  // namespace troupe::transport
