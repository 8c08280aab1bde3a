#include "troupe/transport/arrival_room.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "troupe/transport/tensor_header.hpp"

namespace troupe {
namespace {

bool make_room(std::span<const std::byte> layout, std::size_t body_bytes, tensor& into) {
  auto decoded = decode_layout(layout, body_bytes);
  if (decoded) into = tensor::empty(std::move(decoded->extents), decoded->type);
  return decoded.has_value();
}

}  // namespace

bool arrival_room::is_like_last(std::span<const std::byte> layout, std::size_t body_bytes) const {
  return body_bytes == body_bytes_ && layout.size() == layout_.size() &&
         std::memcmp(layout.data(), layout_.data(), layout.size()) == 0;
}

bool arrival_room::take(std::span<const std::byte> layout, std::size_t body_bytes, tensor& into) {
  if (is_like_last(layout, body_bytes)) {
    if (std::exchange(state_, state::wanted) != state::ready) return make_room(layout, body_bytes, into);
    into = std::move(ready_);
    return true;
  }
  if (!make_room(layout, body_bytes, into)) return false;
  layout_.assign(layout.begin(), layout.end());
  body_bytes_ = body_bytes;
  ready_ = {};
  state_ = state::none;
  return true;
}

void arrival_room::make() {
  state_ = state::none;
  try {
    if (make_room(layout_, body_bytes_, ready_)) state_ = state::ready;
  } catch (const std::bad_alloc&) {  // tried again when it is needed
  }
}

}  // namespace troupe
