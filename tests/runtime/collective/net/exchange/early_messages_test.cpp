#include "troupe/collective/net/exchange/early_messages.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::collective;

namespace {

net::message_header message(std::uint64_t group, int from, net::message_kind kind,
                            std::uint32_t num_ends = 0) {
  net::message_header header;
  header.group = group;
  header.from = from;
  header.kind = kind;
  header.num_ends = num_ends;
  return header;
}

}  // namespace

TEST_CASE(
    "of the messages of a group that is not made yet, the newest of each kind and member are kept in order") {
  early_messages early(100);
  early.keep(message(7, 1, net::message_kind::hello, 0), {});
  early.keep(message(7, 2, net::message_kind::hello, 0), {});
  early.keep(message(8, 1, net::message_kind::hello, 0), {});
  early.keep(message(7, 1, net::message_kind::hello, 1), {});
  early.keep(message(7, 1, net::message_kind::failure, 1), std::vector<std::byte>(3));
  auto of_group = early.take(7);
  CHECK_FALSE(of_group.is_incomplete);
  REQUIRE(of_group.messages.size() == 3);
  CHECK(of_group.messages[0].header.from == 2);
  CHECK((of_group.messages[1].header.from == 1 && of_group.messages[1].header.num_ends == 1));
  CHECK(of_group.messages[2].bytes.size() == 3);
  CHECK(early.take(7).messages.empty());
  CHECK(early.take(8).messages.size() == 1);
}

TEST_CASE("a group whose messages cannot all be kept is incomplete, and others are not") {
  early_messages early(3);
  for (int from : {1, 2}) early.keep(message(7, from, net::message_kind::hello), {});
  early.keep(message(8, 1, net::message_kind::hello), {});
  early.keep(message(8, 1, net::message_kind::hello, 1), {});  // replaces the one before
  early.keep(message(7, 3, net::message_kind::hello), {});
  early.keep(message(7, 4, net::message_kind::hello), {});
  auto lost = early.take(7);
  CHECK((lost.is_incomplete && lost.messages.empty()));
  CHECK_FALSE(early.take(7).is_incomplete);
  CHECK(early.take(8).messages.size() == 1);
  for (int from : {1, 2, 3}) early.keep(message(9, from, net::message_kind::hello), {});
  CHECK(early.take(9).messages.size() == 3);
}
