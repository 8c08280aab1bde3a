#include "troupe/link/wire_table.hpp"

#include <caf/message.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>
#include <set>

#include "example_messages.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/wire/codec.hpp"

using namespace troupe;
using namespace troupe::actors::link;
using namespace troupe::testing;

namespace {

constexpr message_head head_of_test{{actors::actor::actor_role::device, 5, 2}, message_kind::request, 77};

/// Applies `check` to one of every message, as it goes over the wire.
template <class Check>
void for_each_example(fields size, Check check) {
  std::apply([&](const auto&... message) { (check(message), ...); }, example_messages(size));
}

std::vector<std::byte> encoded(const caf::message& content) {
  auto body = encode_message(head_of_test, content);
  REQUIRE(body);
  return *body;
}

int number_of(const caf::message& content) {
  auto body = encoded(content);
  return std::to_integer<int>(body[0]) | std::to_integer<int>(body[1]) << 8;
}

}  // namespace

TEST_CASE("every message that crosses processes is decoded as it was encoded") {
  auto size = GENERATE(fields::empty, fields::full, fields::large);
  for_each_example(size, [&]<class Message>(const Message& message) {
    addressed_message decoded = decode_message(encoded(caf::make_message(message)));
    CHECK(decoded.head == head_of_test);
    REQUIRE(decoded.content.match_elements<Message>());
    // Equal encodings are equal messages: the codec's own tests see to that.
    CHECK(wire::encode(decoded.content.get_as<Message>(0)) == wire::encode(message));
  });
}

TEST_CASE("every type has a number of its own") {
  std::set<int> numbers;
  std::size_t count = 0;
  for_each_example(fields::empty, [&](const auto& message) {
    numbers.insert(number_of(caf::make_message(message)));
    ++count;
  });
  CHECK(numbers.size() == count);
}

TEST_CASE("type numbers are those of the first version") {
  CHECK(number_of(caf::make_message(actors::messages::restore_command{})) == 0x0100);
  CHECK(number_of(caf::make_message(actors::messages::call_finished{})) == 0x0101);
  CHECK(number_of(caf::make_message(actors::messages::call_entered{})) == 0x0200);
  CHECK(number_of(caf::make_message(actors::messages::process_restored{})) == 0x0201);
  CHECK(number_of(caf::make_message(actors::messages::step_done{})) == 0x0202);
  CHECK(number_of(caf::make_message(actors::messages::part_held{})) == 0x0203);
  CHECK(number_of(caf::make_message(actors::messages::part_written{})) == 0x0204);
  CHECK(number_of(caf::make_message(actors::messages::copies_committed{})) == 0x0106);
  CHECK(number_of(caf::make_message(actors::messages::want_results{})) == 0x0110);
  CHECK(number_of(caf::make_message(actors::messages::process_progress{})) == 0x0210);
  CHECK(number_of(caf::make_message(actors::messages::known_results{})) == 0x0211);
  CHECK(number_of(caf::make_message(actors::messages::pause_changed{})) == 0x0105);
  CHECK(number_of(caf::make_message(actors::messages::pause_requested{})) == 0x0212);
  CHECK(number_of(caf::make_message(actors::messages::copies_held{})) == 0x0214);
  CHECK(number_of(caf::make_message(actors::messages::cut_reached{})) == 0x0213);
  CHECK(number_of(caf::make_message(actors::messages::parameters_listed{})) == 0x0215);
  CHECK(number_of(caf::make_message(actors::messages::parameters_hashed{})) == 0x0216);
  CHECK(number_of(caf::make_message(actors::messages::step_credit{})) == 0x0300);
  CHECK(number_of(caf::make_message(actors::messages::hash_parameters{})) == 0x0301);
  CHECK(number_of(caf::make_message(actors::messages::inspect_process{})) == 0x0111);
  CHECK(number_of(caf::make_message(actors::messages::process_report{})) == 0x0500);
}

TEST_CASE("messages that do not cross processes are refused") {
  CHECK_FALSE(encode_message(head_of_test, caf::make_message(actors::messages::list_parts{})));
  CHECK_FALSE(encode_message(head_of_test, caf::make_message(actors::messages::quiesce{1})));
  CHECK_FALSE(encode_message(head_of_test, caf::make_message(actors::messages::job_known{})));
  CHECK_FALSE(encode_message(head_of_test, caf::make_message(42)));
  CHECK_FALSE(encode_message(head_of_test, caf::message()));
  CHECK_FALSE(encode_message(
      head_of_test, caf::make_message(actors::messages::step_credit{}, actors::messages::step_credit{})));
}

TEST_CASE("a head whose kind and request number do not fit together is refused") {
  using kind = message_kind;
  auto decoded = [](const message_head& head) {
    return decode_message(*encode_message(head, caf::make_message(actors::messages::writes_lost{1, 2}))).head;
  };
  actors::actor::actor_name to{actors::actor::actor_role::scheduler, 0, 1};
  for (const auto& head :
       {message_head{to}, message_head{to, kind::request, 1}, message_head{{}, kind::reply, 1},
        message_head{to, kind::request, max_request_number}})
    CHECK(decoded(head) == head);
  for (const auto& head :
       {message_head{to, kind::one_way, 1}, message_head{to, kind::request, 0},
        message_head{to, kind::reply, 0}, message_head{to, kind::request, max_request_number + 1},
        message_head{to, static_cast<kind>(4), 1}})
    CHECK_THROWS_AS(decoded(head), wire::decode_error);
}

TEST_CASE("bodies that do not decode are refused") {
  CHECK_THROWS_AS(decode_message({}), wire::decode_error);
  CHECK_THROWS_AS(decode_message(std::vector<std::byte>(3)), wire::decode_error);
  auto body = encoded(caf::make_message(actors::messages::writes_lost{1, 2}));
  body[0] = std::byte{0xff};
  CHECK_THROWS_AS(decode_message(body), wire::decode_error);
}

TEST_CASE("a body that is cut anywhere, or goes on, is refused") {
  for_each_example(fields::full, [&](const auto& message) {
    auto body = encoded(caf::make_message(message));
    for (std::size_t length = 0; length < body.size(); ++length)
      CHECK_THROWS_AS(decode_message(std::span(body).first(length)), wire::decode_error);
    body.push_back(std::byte{0});
    CHECK_THROWS_AS(decode_message(body), wire::decode_error);
  });
}

TEST_CASE("arbitrary bytes give a message or a decode_error") {
  std::mt19937 random(GENERATE(1u, 2u, 3u));
  int refused = 0;
  for_each_example(fields::full, [&](const auto& message) {
    for (int i = 0; i < 2000; ++i) {
      auto body = encoded(caf::make_message(message));
      for (auto changes = 1 + random() % 4; changes > 0; --changes) {
        auto at = static_cast<std::size_t>(random() % body.size());
        body[at] = random() % 2 ? std::byte{0xff} : std::byte(static_cast<unsigned char>(random()));
      }
      try {
        decode_message(body);
      } catch (const wire::decode_error&) {
        ++refused;
      }
    }
  });
  CHECK(refused > 0);
}
