#include "troupe/collective/group.hpp"

#include <catch2/catch_test_macros.hpp>
#include <type_traits>

#include "troupe/collective/communicator.hpp"
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

template <class Rank>
constexpr bool is_rank_of_mesh = requires(const mesh& grid, Rank rank) {
  grid.coordinates(rank);
};

}  // namespace

TEST_CASE("member indices and World ranks do not convert to each other") {
  STATIC_CHECK(!becomes<world_rank, member_index>);
  STATIC_CHECK(!becomes<member_index, world_rank>);
  STATIC_CHECK(!std::is_assignable_v<world_rank&, member_index>);
  STATIC_CHECK(!std::is_assignable_v<member_index&, world_rank>);
  STATIC_CHECK(!are_comparable<world_rank, member_index>);
  STATIC_CHECK(!std::is_convertible_v<world_rank, int>);  // no way round by int either
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
