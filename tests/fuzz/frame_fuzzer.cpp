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
  if (bytes.size() < frame_header_bytes) return;
  auto measured = measure_frame(bytes.first<frame_header_bytes>());
  const auto* measure = std::get_if<frame_measure>(&measured);
  frame_head head;
  authentication_code code;
  if (!measure || read_frame(bytes, measure->body_bytes, head, code)) return;
  expect(measure->head_bytes == bytes.size() && measure->kind == head.header.kind,
         "a frame has another length than was measured");
  std::vector<std::byte> written;
  auto rest = begin_frame(head.header, head.extension.size(), written);
  rest.put(head.extension);
  rest.put(code);
  expect(std::ranges::equal(written, bytes), "a frame is written as another one");
}

std::vector<std::byte> tensor_header(const tensor_tag& tag, const tensor_layout& layout,
                                     const tensor_header_options& options) {
  std::vector<std::byte> written(tensor_header_bytes(layout.extents, options));
  byte_writer writer(written);
  write_tensor_header(tag, layout.type, layout.extents, options, writer);
  return written;
}

std::vector<std::string> frame_seeds() {
  frame_authenticator key(secret);
  return {text_of(seal_frame(key, {.body_bytes = 3}, {}, {})),
          text_of(seal_frame(key, {.kind = frame_kind::tensor, .from_rank = 1, .body_bytes = 24},
                             tensor_header({}, {dtype::f32, {2, 3}}, {}), {}))};
}

/// The first 8 bytes are how many bytes the tensor has.
void try_tensor_header(input bytes) {
  byte_reader reader(bytes);
  auto body_bytes = reader.get<std::uint64_t>();
  if (!reader.ok()) return;
  tensor_tag tag, tag_again;
  tensor_header_options options, options_again;
  auto layout = decode_layout(read_tensor_header(bytes.subspan(8), tag, options), body_bytes);
  if (!layout) return;
  auto written = tensor_header(tag, *layout, options);
  auto layout_again = decode_layout(read_tensor_header(written, tag_again, options_again), body_bytes);
  expect(tag_again == tag && options_again == options && layout_again == layout,
         "a tensor's header is read back as another one");
}

std::vector<std::string> tensor_header_seeds() {
  std::string body_bytes = std::string(1, 24) + std::string(7, 0);
  tensor_tag tag{.generation = 1, .step = 2, .role = tensor_role::gradient};
  return {body_bytes + text_of(tensor_header(tag, {dtype::f32, {2, 3}}, {})),
          body_bytes + text_of(tensor_header(tag, {dtype::i64, {3}}, {.body_code = authentication_code{}})),
          body_bytes + text_of(tensor_header(
                           tag, {dtype::i64, {3}},
                           {.place = shared_place{segment_report::holds_elements, 1, 64, 4096, 9}}))};
}

void try_greeting(input bytes) {
  if (bytes.size() < greeting_bytes) return;
  auto greeting = bytes.first<greeting_bytes>();
  if (greeting_fault(greeting, agent_protocol)) return;
  auto keys = answer_greeting(greeting, secret, agent_protocol, {});
  expect(!keys.verify(handshake_role::responder, keys.proof_of(handshake_role::initiator)),
         "a proof can be reflected");
}

std::vector<std::string> greeting_seeds() {
  return {std::string(text_of(handshake_responder(secret, agent_protocol).greeting()))};
}

handshake example_handshake() { return {secret, agent_protocol, {}, {}}; }

/// What a member sends to the agent.
void try_stream(input bytes) {
  sealed_channel agent(handshake_role::responder, example_handshake());
  std::vector<std::byte> in(bytes.begin(), bytes.end());
  allow<bad_frame, decode_error>([&] {
    while (auto body = agent.open(in)) static_cast<void>(decode<agent_wire::client_message>(*body));
  });
}

std::vector<std::string> stream_seeds() {
  using namespace agent_wire;
  sealed_channel member(handshake_role::initiator, example_handshake());
  std::vector<std::byte> stream;
  member.seal(encode(client_message(put_value{1, "key", {std::byte{2}}})), stream);
  member.seal(encode(client_message(heartbeat())), stream);
  return {text_of(stream)};
}

void try_address(input bytes) {
  allow<decode_error>([&] {
    auto address = decode_control_address({bytes.begin(), bytes.end()});
    expect(decode_control_address(encode_control_address(address)) == address,
           "an address is read back as another one");
  });
}

std::vector<std::string> address_seeds() { return {text_of(encode_control_address({"127.0.0.1", 80, {}}))}; }

constexpr std::array decoders = {decoder{try_frame, frame_seeds},
                                 decoder{try_tensor_header, tensor_header_seeds},
                                 decoder{try_greeting, greeting_seeds}, decoder{try_stream, stream_seeds},
                                 decoder{try_address, address_seeds}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
