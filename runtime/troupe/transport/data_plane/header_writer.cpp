#include "troupe/transport/data_plane/header_writer.hpp"

#include <algorithm>

#include "troupe/messaging/frame.hpp"

namespace troupe::transport {

header_writer::header_writer(const plane_settings& settings, std::uint64_t generation, int to_rank,
                             const receiver_nonce& receiver)
    : settings_(&settings),
      generation_(generation),
      to_rank_(static_cast<std::uint32_t>(to_rank)),
      code_(connection_code(settings.key, receiver, generation, static_cast<std::uint32_t>(settings.rank),
                            to_rank_)),
      key_(code_) {}

void header_writer::write(const tensor_tag& tag, const tensor_header_options& options, const tensor& value,
                          std::span<const std::byte> body, std::vector<std::byte>& head) {
  messaging::frame_header frame{messaging::frame_kind::tensor,
                                static_cast<std::uint32_t>(settings_->rank),
                                to_rank_,
                                generation_,
                                ++sequence_,
                                body.size()};
  auto rest = begin_frame(frame, tensor_header_bytes(value.shape(), options), head);
  write_tensor_header(tag, value.dtype(), value.shape(), options, rest);
  rest.put(code_);
  if (!settings_->heads_are_private)
    std::ranges::copy(key_.code(messaging::covered_head(head)),
                      head.end() - messaging::authentication_code_bytes);
}

}  // namespace troupe::transport
