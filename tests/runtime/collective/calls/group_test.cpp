#include "troupe/collective/calls/group.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/mesh.hpp"
#include "troupe/tensor/tensor.hpp"

using namespace troupe;

namespace {

template <class From, class To>
constexpr bool becomes = std::is_convertible_v<From, To> || std::is_constructible_v<To, From>;

template <class Root>
constexpr bool is_root = requires(communicator& group, tensor x, Root root) {
  group.broadcast(x, root);
  group.reduce(x, x, root);
  group.gather(x, x, root);
  group.scatter(x, x, root);
};

template <class Peer>
constexpr bool is_peer = requires(communicator& group, tensor x, Peer peer) {
  group.send(x, peer);
  group.receive(x, peer);
};

template <class Left, class Right>
constexpr bool are_comparable = requires(Left left, Right right) {
  left == right;
};

template <class Left, class Right>
constexpr bool are_ordered = requires(Left left, Right right) {
  left < right;
};

template <class Rank>
constexpr bool is_rank_of_mesh = requires(const troupe::collective::mesh& grid, Rank rank) {
  grid.coordinates(rank);
};

}  // namespace

TEST_CASE("member indices and World ranks do not convert to each other") {
  STATIC_CHECK(!becomes<world_rank, member_index>);
  STATIC_CHECK(!becomes<member_index, world_rank>);
  STATIC_CHECK(!std::is_assignable_v<world_rank&, member_index>);
  STATIC_CHECK(!std::is_assignable_v<member_index&, world_rank>);
  STATIC_CHECK(!are_comparable<world_rank, member_index>);
  STATIC_CHECK(!are_comparable<member_index, world_rank>);
  STATIC_CHECK(!are_ordered<world_rank, member_index>);
  STATIC_CHECK(!are_ordered<member_index, world_rank>);
}

TEST_CASE("a World rank is an int where one is wanted") {
  std::vector<world_rank> ranks{0, 2, 3};
  world_rank rank = 2;
  int number = rank;
  std::vector<int> numbers(ranks.begin(), ranks.end());
  CHECK(numbers == std::vector{0, 2, 3});
  CHECK((number == 2 && rank == 2 && 2 == rank && rank < 3 && 1 <= rank && rank == world_rank(2)));
  CHECK((rank % 2 == 0 && rank + 1 == 3));
  CHECK(std::ranges::find(ranks, 3) - ranks.begin() == 2);
  CHECK(std::ranges::count(ranks, rank) == 1);
  CHECK(ranks < std::vector<world_rank>{0, 3});  // as keys of a map
  std::ostringstream text;
  text << rank << " " << to_string(rank) << " " << std::to_string(rank);
  CHECK(text.str() == "2 2 2");
}

TEST_CASE("roots and peers of a communicator are members, coordinates of a mesh belong to ranks") {
  STATIC_CHECK((is_root<int> && is_root<member_index> && !is_root<world_rank>));
  STATIC_CHECK((is_peer<int> && is_peer<member_index> && !is_peer<world_rank>));
  STATIC_CHECK((is_rank_of_mesh<int> && is_rank_of_mesh<world_rank> && !is_rank_of_mesh<member_index>));
}

TEST_CASE("a group knows the rank of a member and the member of a rank") {
  group_description group{"odd", {7, 3, 5}, 1};
  CHECK(group.rank_of(group.member) == 3);
  CHECK(group.member_of(5) == 2);
  CHECK(!group.member_of(2));
  CHECK(to_string(group.rank_of(0)) == "7");
}

TEST_CASE("the key of a group fits into a store's keys for any number of members, and tells groups apart") {
  auto first_ranks = [](int count) {
    std::vector<world_rank> ranks;
    for (int rank = 0; rank < count; ++rank) ranks.emplace_back(rank);
    return ranks;
  };
  group_description few{"12/default", {0, 2}}, all{"12/default", first_ranks(65536)};
  CHECK(few.key() == "12/default/0/2");
  CHECK(all.key().size() <= 64);
  std::set<std::string> keys;
  for (int count : {1, 16, 17, 80, 81, 200})
    keys.insert(group_description{"default", first_ranks(count)}.key());
  auto swapped = first_ranks(200);
  std::swap(swapped[0], swapped[199]);
  keys.insert(group_description{"default", swapped}.key());
  keys.insert(group_description{"other", swapped}.key());
  CHECK(keys.size() == 8);
}
