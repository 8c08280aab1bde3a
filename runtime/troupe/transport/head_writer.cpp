#include "troupe/transport/head_writer.hpp"

#include <algorithm>
#include <limits>

#include "troupe/transport/repeated_head.hpp"
#include "troupe/wire/frame.hpp"

namespace troupe {

head_writer::head_writer(const plane_settings& settings, std::uint64_t generation, int to_rank,
                         const receiver_nonce& receiver)
    : settings_(&settings),
      generation_(generation),
      to_rank_(static_cast<std::uint32_t>(to_rank)),
      code_(connection_code(settings.key, receiver, generation, static_cast<std::uint32_t>(settings.rank),
                            to_rank_)),
      key_(code_) {}

bool head_writer::is_repeated(const tensor_tag& tag, const tensor& value) const {
  if (!pattern_) return false;
  const auto& last = pattern_->tag;
  return last.call == tag.call && last.stage == tag.stage && last.role == tag.role &&
         last.step >> 32 == tag.step >> 32 && pattern_->type == value.type() &&
         pattern_->extents == value.extents();
}

void head_writer::write(const tensor_tag& tag, const std::optional<authentication_code>& body_code,
                        const tensor& value, std::vector<std::byte>& head) {
  auto sequence = ++sequence_;
  if (is_repeated(tag, value)) {
    repeated_head repeated{static_cast<std::uint8_t>(pattern_->sequence),
                           static_cast<std::uint16_t>(settings_->rank), half_of(code_),
                           static_cast<std::uint32_t>(tag.step), tag.microbatch};
    return write_repeated_head(repeated, head);
  }
  frame_header frame{frame_kind::tensor, static_cast<std::uint32_t>(settings_->rank),
                     to_rank_,           generation_,
                     sequence,           value.size_bytes()};
  auto rest = begin_frame(frame, tensor_header_bytes(value.extents(), body_code), head);
  write_tensor_header(tag, value.type(), value.extents(), body_code, rest);
  rest.put(code_);
  if (!settings_->heads_are_private)
    std::ranges::copy(key_.code(covered_head(head)), head.end() - authentication_code_bytes);
  else if (value.size_bytes() <= largest_repeated_bytes &&
           settings_->rank <= std::numeric_limits<std::uint16_t>::max())
    pattern_ = {sequence, tag, value.type(), value.extents()};
}

}  // namespace troupe
