// Messages between processes: what members and agent, processes, and members of groups send, and states that
// are copied. The first byte chooses. What is decoded and encoded is decoded again, to the same.
#include <algorithm>
#include <array>
#include <tuple>
#include <variant>

#include "actors/link/example_messages.hpp"
#include "fuzz/fuzzer.hpp"
#include "troupe/cluster/agent_messages.hpp"
#include "troupe/collective/diagnostics/failure_report.hpp"
#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/job/finished_calls.hpp"
#include "troupe/link/wire_table.hpp"
#include "troupe/wire/codec.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::fuzz {
namespace {

using input = std::span<const std::byte>;

template <class Message>
void try_message(input bytes) {
  allow<wire::decode_error>([&] {
    auto once = wire::encode(wire::decode<Message>(bytes));
    expect(wire::encode(wire::decode<Message>(once)) == once, "a message is read back as another one");
  });
}

template <class... Messages>
std::vector<std::string> one_of_each(const std::variant<Messages...>&) {
  return {text_of(wire::encode(std::variant<Messages...>(Messages())))...};
}

std::vector<std::string> client_seeds() { return one_of_each(cluster::agent_wire::client_message()); }

std::vector<std::string> agent_seeds() {
  auto made = one_of_each(cluster::agent_wire::agent_message());
  cluster::agent_wire::view members{1, std::vector<cluster::agent_wire::member_fields>(2)};
  made.push_back(text_of(wire::encode(cluster::agent_wire::agent_message(members))));
  return made;
}

void try_node_message(input bytes) {
  allow<wire::decode_error>([&] {
    auto message = actors::link::decode_message(bytes);
    auto once = encode_message(message.head, message.content);
    expect(once.has_value(), "a message was decoded that is not encoded");
    auto again = actors::link::decode_message(*once);
    expect(again.head == message.head && encode_message(again.head, again.content) == once,
           "a message between nodes is read back as another one");
  });
}

std::vector<std::string> node_seeds() {
  actors::link::message_head head{
      {actors::actor::actor_role::device, 5, 2}, actors::link::message_kind::request, 77};
  std::vector<std::string> made;
  for (auto size : {testing::fields::empty, testing::fields::full})
    std::apply(
        [&](const auto&... message) {
          (made.push_back(text_of(encode_message(head, caf::make_message(message)).value())), ...);
        },
        testing::example_messages(size));
  return made;
}

void try_result(input bytes) {
  allow<wire::decode_error>([&] {
    actors::job::call_log log;
    add_call(bytes, log);
    auto once = block_of_call(log, 0);
    actors::job::call_log again;
    add_call(once, again);
    expect(block_of_call(again, 0) == once, "the result of a call is read back as another one");
  });
}

std::vector<std::string> result_seeds() {
  auto result = testing::example_result(testing::fields::full);
  result.index = 0;
  return {text_of(wire::encode(result)), text_of(wire::encode(actors::job::call_result()))};
}

void try_failure_report(input bytes) {
  auto once = encode(collective::decode_failure_report(bytes));
  expect(encode(collective::decode_failure_report(std::as_bytes(std::span(once)))) == once,
         "a failure report is read back as another one");
}

std::vector<std::string> failure_report_seeds() {
  return {encode(collective::failure_report{
              3, "is in call 3", {1, 2}, collective_failure::transport, {4}, "two\nlines"}),
          encode(collective::failure_report())};
}

void try_member_info(input bytes) {
  allow<std::runtime_error>([&] {
    auto once = to_string(collective::parse_member_info(std::string(text_of(bytes))));
    expect(to_string(collective::parse_member_info(once)) == once,
           "a member info is read back as another one");
  });
}

std::vector<std::string> member_info_seeds() {
  return {to_string(collective::member_info{"host", 1, "address", "sizes"})};
}

void try_packed_state(input bytes) {
  auto packed = tensor::empty({static_cast<std::int64_t>(bytes.size())}, dtype::u8);
  std::ranges::copy(bytes, packed.bytes().begin());
  allow<std::runtime_error>([&] {
    wire::packed_state_pool pool;
    auto again = [&pool](const tensor& from) {
      auto state = wire::unpack_contents(from);
      return pack_state(state.tensors, state.contents, pool);
    };
    const auto once = again(packed), twice = again(once);
    expect(std::ranges::equal(once.bytes(), twice.bytes()), "a packed state is read back as another one");
  });
}

std::vector<std::string> packed_state_seeds() {
  wire::packed_state_pool pool;
  const std::vector<named_tensor> state = {{"weight", tensor::zeros({2, 2})},
                                           {"step", tensor::zeros({}, dtype::i64)}};
  auto sliced = whole_contents(state);
  sliced[0].whole = {2, 4};
  sliced[0].boxes = {{{0, 2}, {2, 2}}};
  return {std::string(text_of(pack_state(state, pool).bytes())),
          std::string(text_of(pack_state(state, sliced, pool).bytes()))};
}

constexpr std::array decoders = {decoder{try_message<cluster::agent_wire::client_message>, client_seeds},
                                 decoder{try_message<cluster::agent_wire::agent_message>, agent_seeds},
                                 decoder{try_node_message, node_seeds},
                                 decoder{try_result, result_seeds},
                                 decoder{try_failure_report, failure_report_seeds},
                                 decoder{try_member_info, member_info_seeds},
                                 decoder{try_packed_state, packed_state_seeds}};

}  // namespace

void try_input(std::span<const std::byte> bytes) { try_one_of(decoders, bytes); }

std::vector<std::string> seeds() { return seeds_of(decoders); }

}  // namespace troupe::fuzz
