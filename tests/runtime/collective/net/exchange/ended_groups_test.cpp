#include "troupe/collective/net/exchange/ended_groups.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::collective;

namespace {

struct fixture {
  std::vector<void*> released;
  ended_groups groups{[this](void* each) { released.push_back(each); }};
  std::array<char, 3> bytes{};

  void* descriptor(std::size_t i) { return &bytes[i]; }
  bool receive(std::uint64_t group, int from, net::message_kind kind, void* fetched = nullptr) {
    net::message_header header;
    header.group = group;
    header.from = from;
    header.kind = kind;
    return groups.on_message(header, fetched);
  }
};

}  // namespace

TEST_CASE("a message that waits to be fetched is released when its sender has ended the group") {
  fixture of;
  of.groups.add(7, {{1, {10, {of.descriptor(0)}}}, {2, {20}}}, true);
  CHECK(of.receive(7, 1, net::message_kind::elements, of.descriptor(1)));
  CHECK(of.receive(7, 2, net::message_kind::elements, of.descriptor(2)));
  CHECK(of.released.empty());
  CHECK_FALSE(of.receive(7, 1, net::message_kind::failure));
  CHECK(of.released == std::vector<void*>{of.descriptor(0), of.descriptor(1)});
  CHECK(of.groups.has_aborted());
  CHECK_FALSE(of.receive(7, 2, net::message_kind::leaving));
  CHECK(of.released.size() == 3);
  CHECK_FALSE(of.groups.contains(7));
  CHECK_FALSE(of.groups.has_aborted());
}

TEST_CASE("other messages of an ended group are dropped") {
  fixture of;
  of.groups.add(7, {{1, {10}}}, false);
  for (auto kind : {net::message_kind::hello, net::message_kind::elements, net::message_kind::call_notice})
    CHECK_FALSE(of.receive(7, 1, kind));
  CHECK_FALSE(of.receive(7, 2, net::message_kind::elements, of.descriptor(0)));
  CHECK(of.groups.contains(7));
  CHECK_FALSE(of.groups.has_aborted());
}

TEST_CASE("a lost connection forgets the members behind it, and does not release their messages") {
  fixture of;
  of.groups.add(7, {{1, {10, {of.descriptor(0)}}}, {2, {20}}}, true);
  of.groups.add(8, {{0, {10}}}, true);
  of.groups.add(9, {}, true);
  CHECK_FALSE(of.groups.contains(9));
  of.groups.on_lost(10);
  CHECK((of.groups.contains(7) && !of.groups.contains(8)));
  of.groups.on_lost(20);
  CHECK_FALSE(of.groups.contains(7));
  CHECK(of.released.empty());
}
