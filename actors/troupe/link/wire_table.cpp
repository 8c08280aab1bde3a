#include "troupe/link/wire_table.hpp"

#include <caf/message.hpp>
#include <string>

#include "troupe/device/messages.hpp"
#include "troupe/gatherer/messages.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/supervisor/messages.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe {
namespace {

/// One type of message and its number on the wire.
template <std::uint16_t Number, class T>
struct row {
  static constexpr std::uint16_t number = Number;
  using type = T;
};

/// The header before the body: a separate archive of fixed size.
struct frame_head {
  std::uint16_t id = 0;
  actor_name to;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, to);
  }
};

template <class T>
std::vector<std::byte> framed(std::uint16_t number, const actor_name& to, const T& content) {
  auto bytes = encode(frame_head{number, to});
  auto body = encode(content);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

template <class... Rows>
struct table {
  static std::optional<std::vector<std::byte>> encode_any(const actor_name& to, const caf::message& content) {
    std::optional<std::vector<std::byte>> body;
    ((content.match_elements<typename Rows::type>() &&
      (body = framed(Rows::number, to, content.get_as<typename Rows::type>(0)), true)) ||
     ...);
    return body;
  }

  static caf::message decode_any(std::uint16_t number, std::span<const std::byte> rest) {
    caf::message content;
    bool known =
        ((number == Rows::number && (content = caf::make_message(decode<typename Rows::type>(rest)), true)) ||
         ...);
    if (!known) throw decode_error("unknown message type " + std::to_string(number));
    return content;
  }
};

/// One block of 256 numbers per receiving family. Never reuse one.
using messages_between_nodes =
    table<row<0x0100, restore_order>, row<0x0101, call_finished>, row<0x0102, snapshot_failed>,
          row<0x0103, write_copies>, row<0x0104, replicate_copies>, row<0x0105, pause_changed>,
          row<0x0106, copies_committed>, row<0x0110, want_results>,  //
          row<0x0200, call_entered>, row<0x0201, node_restored>, row<0x0202, step_done>,
          row<0x0203, part_held>, row<0x0204, part_written>, row<0x0205, result_seen>,
          row<0x0206, replicas_lost>, row<0x0207, replicas_wanted>, row<0x0208, writes_lost>,
          row<0x0210, node_progress>, row<0x0211, known_results>, row<0x0212, pause_requested>,
          row<0x0213, cut_reached>,        //
          row<0x0220, gathered_received>,  //
          row<0x0300, grant>,              //
          row<0x0400, get_cached>, row<0x0401, cached_sent>>;

}  // namespace

std::optional<std::vector<std::byte>> encode_message(const actor_name& to, const caf::message& content) {
  return messages_between_nodes::encode_any(to, content);
}

addressed_message decode_message(std::span<const std::byte> body) {
  static const auto head_bytes = encode(frame_head{}).size();
  if (body.size() < head_bytes) throw decode_error("control message shorter than its header");
  auto head = decode<frame_head>(body.first(head_bytes));
  return {head.to, messages_between_nodes::decode_any(head.id, body.subspan(head_bytes))};
}

}  // namespace troupe
