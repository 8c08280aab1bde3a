#include "troupe/link/wire_table.hpp"

#include <caf/message.hpp>
#include <string>

#include "troupe/messages/device.hpp"
#include "troupe/messages/gatherer.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/messages/link.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/messages/supervisor_commands.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::actors::link {
namespace {

/// One type of message and its number on the wire.
template <std::uint16_t Number, class T>
struct row {
  static constexpr std::uint16_t number = Number;
  using type = T;
};

/// What is before the message's struct: a separate archive of fixed size.
struct body_head {
  std::uint16_t type = 0;
  message_head head;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(type, head);
  }
};

/// Whether kind and number fit together.
bool is_valid(const message_head& head) {
  if (head.kind == message_kind::one_way) return head.request == 0;
  return (head.kind == message_kind::request || head.kind == message_kind::reply) && head.request > 0 &&
         head.request <= max_request_number;
}

template <class T>
std::vector<std::byte> framed(std::uint16_t number, const message_head& head, const T& content) {
  auto bytes = wire::encode(body_head{number, head});
  auto body = wire::encode(content);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

template <class... Rows>
struct table {
  static std::optional<std::vector<std::byte>> encode_any(const message_head& head,
                                                          const caf::message& content) {
    std::optional<std::vector<std::byte>> body;
    ((content.match_elements<typename Rows::type>() &&
      (body = framed(Rows::number, head, content.get_as<typename Rows::type>(0)), true)) ||
     ...);
    return body;
  }

  static caf::message decode_any(std::uint16_t number, std::span<const std::byte> rest) {
    caf::message content;
    bool known = ((number == Rows::number &&
                   (content = caf::make_message(wire::decode<typename Rows::type>(rest)), true)) ||
                  ...);
    if (!known) throw wire::decode_error("unknown message type " + std::to_string(number));
    return content;
  }
};

/// One block of 256 numbers per receiving family. Never reuse one.
using messages_between_processes =
    table<row<0x0001, messages::request_done>, row<0x0002, messages::request_failed>,  //
          row<0x0100, messages::restore_command>, row<0x0101, messages::call_finished>,
          row<0x0102, messages::snapshot_failed>, row<0x0103, messages::write_copies>,
          row<0x0104, messages::replicate_copies>, row<0x0105, messages::pause_changed>,
          row<0x0106, messages::copies_committed>, row<0x0110, messages::want_results>,
          row<0x0111, messages::inspect_process>, row<0x0120, messages::end_actor>,
          row<0x0121, messages::end_process>, row<0x0122, messages::set_log_level>,  //
          row<0x0200, messages::call_entered>, row<0x0201, messages::process_restored>,
          row<0x0202, messages::step_done>, row<0x0203, messages::part_held>,
          row<0x0204, messages::part_written>, row<0x0206, messages::replicas_lost>,
          row<0x0207, messages::replicas_wanted>, row<0x0208, messages::writes_lost>,
          row<0x0210, messages::process_progress>, row<0x0211, messages::known_results>,
          row<0x0212, messages::pause_requested>, row<0x0213, messages::cut_reached>,
          row<0x0214, messages::copies_held>, row<0x0215, messages::parameters_listed>,
          row<0x0216, messages::parameters_hashed>,                                    //
          row<0x0220, messages::gathered_received>,                                    //
          row<0x0300, messages::step_credit>, row<0x0301, messages::hash_parameters>,  //
          row<0x0400, messages::get_cached>, row<0x0401, messages::cached_sent>,       //
          row<0x0500, messages::process_report>, row<0x0501, messages::command_carried_out>>;

}  // namespace

std::optional<std::vector<std::byte>> encode_message(const message_head& head, const caf::message& content) {
  return messages_between_processes::encode_any(head, content);
}

addressed_message decode_message(std::span<const std::byte> body) {
  static const auto head_bytes = wire::encode(body_head{}).size();
  if (body.size() < head_bytes) throw wire::decode_error("control message shorter than its head");
  auto [type, head] = wire::decode<body_head>(body.first(head_bytes));
  if (!is_valid(head))
    throw wire::decode_error("control message of kind " + std::to_string(static_cast<int>(head.kind)) +
                             " with request number " + std::to_string(head.request));
  return {head, messages_between_processes::decode_any(type, body.subspan(head_bytes))};
}

}  // namespace troupe::actors::link
