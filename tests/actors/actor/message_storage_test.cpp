#include "troupe/actor/message_storage.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/deep_to_string.hpp>
#include <caf/make_message.hpp>
#include <caf/scoped_actor.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "troupe/actor/actor_error.hpp"

namespace {

struct words {
  std::vector<std::string> texts;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(words)

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a message that is changed is copied first if another one shares it") {
  auto first = caf::make_message(words{{"a"}});
  auto second = first;
  second.get_mutable_as<words>(0).texts.push_back("b");

  CHECK(first.get_as<words>(0).texts == std::vector<std::string>{"a"});
  CHECK(second.get_as<words>(0).texts == std::vector<std::string>{"a", "b"});
  CHECK(first.match_elements<words>());
  CHECK_FALSE(first.match_elements<std::string>());
}

TEST_CASE("a message is moved out of a mailbox with its content, and copied where it stays there") {
  auto element = caf::make_mailbox_element(nullptr, caf::make_message_id(), {}, words{{"a", "b"}});

  auto copied = element->copy_content_to_message();
  CHECK(copied.get_as<words>(0).texts.size() == 2);
  CHECK(element->content().get_as<words>(0).texts.size() == 2);
  auto moved = element->move_content_to_message();
  CHECK(moved.get_as<words>(0).texts.size() == 2);
  CHECK(element->content().get_as<words>(0).texts.empty());
}

TEST_CASE("messages reach handlers of their type") {
  caf::actor_system_config config;
  caf::actor_system system(config);
  caf::scoped_actor self(system);
  self->send(self, words{{"sent"}});
  std::string received;
  self->receive([&](const words& got) { received = got.texts.at(0); });
  CHECK(received == "sent");
}

TEST_CASE("a message is printed by its type, copied as a whole only, and not serialized") {
  caf::actor_system_config config;
  caf::actor_system system(config);
  auto message = caf::make_message(words{{"a"}});

  CHECK_THAT(caf::to_string(message), ContainsSubstring("words"));
  CHECK_THROWS_AS(message.content().copy(0), std::logic_error);
  std::vector<char> bytes;
  caf::binary_serializer sink(system, bytes);
  auto refused = message.content().save(0, sink);
  CHECK(refused == troupe::actors::actor::actor_error::failed);
  CHECK_THAT(troupe::actors::actor::describe(refused), ContainsSubstring("words"));
  CHECK(bytes.empty());
}
