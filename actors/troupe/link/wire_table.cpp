#include "troupe/link/wire_table.hpp"

#include <caf/message.hpp>
#include <string>

#include "troupe/device/messages.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/messages.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe {
namespace {

/// Type numbers: one block of 256 per receiving family. Never reuse one.
template <class T>
struct wire_id;
template <>
struct wire_id<restore_order> {
  static constexpr std::uint16_t value = 0x0100;
};
template <>
struct wire_id<call_finished> {
  static constexpr std::uint16_t value = 0x0101;
};
template <>
struct wire_id<call_entered> {
  static constexpr std::uint16_t value = 0x0200;
};
template <>
struct wire_id<node_restored> {
  static constexpr std::uint16_t value = 0x0201;
};
template <>
struct wire_id<step_done> {
  static constexpr std::uint16_t value = 0x0202;
};
template <>
struct wire_id<part_held> {
  static constexpr std::uint16_t value = 0x0203;
};
template <>
struct wire_id<part_written> {
  static constexpr std::uint16_t value = 0x0204;
};
template <>
struct wire_id<result_seen> {
  static constexpr std::uint16_t value = 0x0205;
};
template <>
struct wire_id<grant> {
  static constexpr std::uint16_t value = 0x0300;
};

/// Before the body, an archive of its own and of fixed size.
struct frame_head {
  std::uint16_t id = 0;
  actor_name to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, to);
  }
};

template <class... Ts>
struct table {
  static std::optional<std::vector<std::byte>> encode_any(const actor_name& to, const caf::message& content) {
    std::optional<std::vector<std::byte>> body;
    ((content.match_elements<Ts>() && (body = framed(to, content.get_as<Ts>(0)), true)) || ...);
    return body;
  }

  template <class T>
  static std::vector<std::byte> framed(const actor_name& to, const T& content) {
    auto bytes = encode(frame_head{wire_id<T>::value, to});
    auto body = encode(content);
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
  }

  static caf::message decode_any(std::uint16_t id, std::span<const std::byte> rest) {
    caf::message content;
    bool known = ((id == wire_id<Ts>::value && (content = caf::make_message(decode<Ts>(rest)), true)) || ...);
    if (!known) throw decode_error("unknown message type " + std::to_string(id));
    return content;
  }
};

using messages_between_nodes = table<restore_order, call_finished, call_entered, node_restored, step_done,
                                     part_held, part_written, result_seen, grant>;

}  // namespace

std::optional<std::vector<std::byte>> encode_message(const actor_name& to, const caf::message& content) {
  return messages_between_nodes::encode_any(to, content);
}

addressed_message decode_message(std::span<const std::byte> body) {
  static const auto head_bytes = encode(frame_head{}).size();
  if (body.size() < head_bytes) throw decode_error("control message shorter than its head");
  auto head = decode<frame_head>(body.first(head_bytes));
  return {head.to, messages_between_nodes::decode_any(head.id, body.subspan(head_bytes))};
}

}  // namespace troupe
