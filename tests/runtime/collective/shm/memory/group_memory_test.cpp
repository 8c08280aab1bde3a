#include "troupe/collective/shm/memory/group_memory.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "troupe/collective/shm/memory/peer_process.hpp"

using namespace troupe;
using namespace troupe::collective;

namespace {

/// A pair of members in one process: the owner of the memory and another one.
struct pair_of_members {
  group_memory own;
  attached_group_memory other{own.descriptor()};
  std::shared_ptr<peer_process> peer =
      std::make_shared<peer_process>(1, posix::unique_fd(), posix::unique_fd(), posix::unique_fd(),
                                     posix::unique_fd(::dup(own.descriptor())));

  std::unique_ptr<group_area> add(std::uint64_t number) { return own.add(number, {nullptr, peer}, 0); }
  std::unique_ptr<group_area> find(std::uint64_t number) const { return other.find(number, 2, 1); }
};

}  // namespace

TEST_CASE("members of a group find the same memory, zero at first, as long as it is about to begin") {
  pair_of_members given;
  CHECK_FALSE(given.find(7));
  auto changes = given.other.changes().load();
  auto own = given.add(7), another = given.add(8);
  CHECK(given.other.changes() != changes);
  auto found = given.find(7);
  REQUIRE(found);
  CHECK(found->control_block()[100] == std::byte{0});
  own->control_block()[100] = std::byte{5};
  CHECK(found->control_block()[100] == std::byte{5});
  CHECK(another->control_block()[100] == std::byte{0});
  CHECK_FALSE(own->has_arrived(1));
  changes = own->changes().load();
  found->arrive();
  CHECK(own->has_arrived(1));
  CHECK(own->changes() != changes);
  given.own.remove(7);
  CHECK_FALSE(given.find(7));
  CHECK(given.find(8));
}

TEST_CASE("the others see that a member leaves a group before it has begun") {
  pair_of_members given;
  auto own = given.add(1), found = given.find(1);
  found->arrive();
  found.reset();
  CHECK(own->has_given_up(1));
  auto next = given.add(2);
  found = given.find(2);
  found->arrive();
  found->begin();
  found.reset();
  CHECK(next->has_arrived(1));
  CHECK_FALSE(next->has_given_up(1));
}

TEST_CASE("memory that all members have left, or whose processes have ended, is used again and is zero") {
  pair_of_members given;
  auto add_used = [&](std::uint64_t number) {
    auto area = given.add(number);
    CHECK(area->control_block()[0] == std::byte{0});
    area->control_block()[0] = std::byte{1};
    given.own.remove(number);
    return area->control_block();
  };
  std::set<std::byte*> places;
  for (std::uint64_t number = 1; number <= 10; ++number) places.insert(add_used(number));
  CHECK(places.size() == 10);  // the peer has not left
  given.peer->set_ended();
  for (std::uint64_t number = 11; number <= 20; ++number) places.insert(add_used(number));
  CHECK(places.size() == 10);
}

TEST_CASE("memory of another kind is refused") {
  auto segment = shared_memory::make_segment(1, 4096);
  CHECK_THROWS_AS(attached_group_memory(segment->fd.get()), std::runtime_error);
}
