// What is around messages between processes: handshakes, frames, the headers of tensors, and addresses. The
// first byte chooses.
#include <algorithm>
#include <array>

#include "fuzz/fuzzer.hpp"
#include "troupe/cluster/agent_messages.hpp"
#include "troupe/messaging/control_address.hpp"
#include "troupe/messaging/frame.hpp"
#include "troupe/messaging/handshake.hpp"
#include "troupe/messaging/sealed_channel.hpp"
#include "troupe/transport/tensor_header.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::fuzz {
namespace {

using input = std::span<const std::byte>;

const std::array<std::byte, 32> secret{};

void try_frame(input bytes) {
  if (bytes.size() < messaging::frame_header_bytes) return;
  auto measured = messaging::measure_frame(bytes.first<messaging::frame_header_bytes>());
  const auto* measure = std::get_if<messaging::frame_measure>(&measured);
  messaging::frame_head head;
  messaging::authentication_code code;
  if (!measure || read_frame(bytes, measure->body_bytes, head, code)) return;
  expect(measure->head_bytes == bytes.size() && measure->kind == head.header.kind,
         "a frame has another length than was measured");
  std::vector<std::byte> written;
  auto rest = begin_frame(head.header, head.extension.size(), written);
  rest.put(head.extension);
  rest.put(code);
  expect(std::ranges::equal(written, bytes), "a frame is written as another one");
}

std::vector<std::byte> tensor_header(const transport::tensor_tag& tag, const transport::tensor_layout& layout,
                                     const transport::tensor_header_options& options) {
  std::vector<std::byte> written(tensor_header_bytes(layout.extents, options));
  wire::byte_writer writer(written);
  write_tensor_header(tag, layout.type, layout.extents, options, writer);
  return written;
}

std::vector<std::string> frame_seeds() {
  messaging::frame_authenticator key(secret);
  return {text_of(seal_frame(key, {.body_bytes = 3}, {}, {})),
          text_of(seal_frame(key, {.kind = messaging::frame_kind::tensor, .from_rank = 1, .body_bytes = 24},
                             tensor_header({}, {dtype::f32, {2, 3}}, {}), {}))};
}

/// The first 8 bytes are how many bytes the tensor has.
void try_tensor_header(input bytes) {
  wire::byte_reader reader(bytes);
  auto body_bytes = reader.get<std::uint64_t>();
  if (!reader.ok()) return;
  transport::tensor_tag tag, tag_again;
  transport::tensor_header_options options, options_again;
  auto layout = transport::decode_layout(read_tensor_header(bytes.subspan(8), tag, options), body_bytes);
  if (!layout) return;
  auto written = tensor_header(tag, *layout, options);
  auto layout_again =
      transport::decode_layout(read_tensor_header(written, tag_again, options_again), body_bytes);
  expect(tag_again == tag && options_again == options && layout_again == layout,
         "a tensor's header is read back as another one");
}

std::vector<std::string> tensor_header_seeds() {
  std::string body_bytes = std::string(1, 24) + std::string(7, 0);
  transport::tensor_tag tag{.generation = 1, .step = 2, .role = transport::tensor_role::gradient};
  return {
      body_bytes + text_of(tensor_header(tag, {dtype::f32, {2, 3}}, {})),
      body_bytes +
          text_of(tensor_header(tag, {dtype::i64, {3}}, {.body_code = messaging::authentication_code{}})),
      body_bytes + text_of(tensor_header(tag, {dtype::i64, {3}},
                                         {.place = transport::shared_place{
                                              transport::segment_report::holds_elements, 1, 64, 4096, 9}}))};
}

void try_greeting(input bytes) {
  if (bytes.size() < messaging::greeting_bytes) return;
  auto greeting = bytes.first<messaging::greeting_bytes>();
  if (greeting_fault(greeting, messaging::agent_protocol)) return;
  auto keys = answer_greeting(greeting, secret, messaging::agent_protocol, {});
  expect(
      !keys.verify(messaging::handshake_role::responder, keys.proof_of(messaging::handshake_role::initiator)),
      "a proof can be reflected");
}

std::vector<std::string> greeting_seeds() {
  return {std::string(text_of(messaging::handshake_responder(secret, messaging::agent_protocol).greeting()))};
}

messaging::handshake example_handshake() { return {secret, messaging::agent_protocol, {}, {}}; }

/// What a member sends to the agent.
void try_stream(input bytes) {
  messaging::sealed_channel agent(messaging::handshake_role::responder, example_handshake());
  std::vector<std::byte> in(bytes.begin(), bytes.end());
  allow<messaging::bad_frame, wire::decode_error>([&] {
    while (auto body = agent.open(in))
      static_cast<void>(wire::decode<cluster::agent_wire::client_message>(*body));
  });
}

std::vector<std::string> stream_seeds() {
  using namespace cluster::agent_wire;
  messaging::sealed_channel member(messaging::handshake_role::initiator, example_handshake());
  std::vector<std::byte> stream;
  member.seal(wire::encode(cluster::agent_wire::client_message(
                  cluster::agent_wire::put_value{1, "key", {std::byte{2}}})),
              stream);
  member.seal(wire::encode(cluster::agent_wire::client_message(cluster::agent_wire::heartbeat())), stream);
  return {text_of(stream)};
}

void try_address(input bytes) {
  allow<wire::decode_error>([&] {
    auto address = messaging::decode_control_address({bytes.begin(), bytes.end()});
    expect(messaging::decode_control_address(messaging::encode_control_address(address)) == address,
           "an address is read back as another one");
  });
}

std::vector<std::string> address_seeds() {
  return {text_of(messaging::encode_control_address({"127.0.0.1", 80, {}}))};
}

constexpr std::array decoders = {decoder{try_frame, frame_seeds},
                                 decoder{try_tensor_header, tensor_header_seeds},
                                 decoder{try_greeting, greeting_seeds}, decoder{try_stream, stream_seeds},
                                 decoder{try_address, address_seeds}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
