#include "troupe/transport/data_plane/header_reader.hpp"

#include <utility>

namespace troupe::transport {

std::span<const std::byte> header_reader::read(std::span<const std::byte> head, std::size_t body_bytes,
                                               tensor_arrival& arrival) {
  messaging::frame_head frame;
  messaging::authentication_code code;
  if (read_frame(head, body_bytes, frame, code) || frame.header.kind != messaging::frame_kind::tensor ||
      !std::cmp_equal(frame.header.to_rank, settings_.rank) || !is_authentic(frame.header, head, code))
    return {};
  auto layout = read_tensor_header(frame.extension, arrival.tag, arrival.options);
  if (layout.empty() || arrival.tag.generation != frame.header.generation) return {};
  arrival.from_rank = static_cast<int>(frame.header.from_rank);
  return layout;
}

bool header_reader::is_authentic(const messaging::frame_header& header, std::span<const std::byte> head,
                                 const messaging::authentication_code& code) {
  auto found = senders_.find(header.from_rank);
  if (found != senders_.end() && found->second.generation == header.generation)
    return is_authentic(found->second, header.sequence, head, code);
  auto wanted = connection_code(settings_.key, own_, header.generation, header.from_rank, header.to_rank);
  sender from{header.generation, wanted, messaging::frame_authenticator(wanted), {}};
  if (!is_authentic(from, header.sequence, head, code)) return false;
  senders_.insert_or_assign(header.from_rank, std::move(from));
  return true;
}

bool header_reader::is_authentic(sender& from, std::uint64_t sequence, std::span<const std::byte> head,
                                 const messaging::authentication_code& code) const {
  if (settings_.heads_are_private) return messaging::same_code(code, from.code);
  return messaging::same_code(code, from.key.code(messaging::covered_head(head))) &&
         from.seen.admit(sequence);
}

}  // namespace troupe::transport
