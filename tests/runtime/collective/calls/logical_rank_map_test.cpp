#include "troupe/collective/calls/logical_rank_map.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <utility>

using namespace troupe;
using namespace troupe::collective;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

#define CHECK_REFUSED(call, text) \
  CHECK_THROWS_MATCHES(call, std::invalid_argument, MessageMatches(ContainsSubstring(text)))

namespace {

using leaf_lists = std::vector<std::vector<int>>;

/// All nodes of the tree over [first, first + count) leaves, parents before their children.
void append_tree(int first, int count, std::vector<tree_node>& nodes) {
  nodes.push_back({first, count});
  if (count == 1) return;
  int left = 1;
  while (2 * left < count) left *= 2;
  append_tree(first, left, nodes);
  append_tree(first + left, count - left, nodes);
}

/// The nodes whose leaves are all chosen, without those below another such node.
std::vector<tree_node> largest_nodes(const std::vector<tree_node>& tree, unsigned chosen) {
  std::vector<tree_node> largest;
  for (const auto& node : tree) {
    unsigned leaves = ((1U << node.count) - 1) << node.first;
    bool is_below = std::ranges::any_of(largest, [&](const tree_node& other) {
      return other.first <= node.first && node.first + node.count <= other.first + other.count;
    });
    if ((leaves & chosen) == leaves && !is_below) largest.push_back(node);
  }
  std::ranges::sort(largest, {}, &tree_node::first);
  return largest;
}

std::vector<int> leaves_in(unsigned chosen, int num_leaves) {
  std::vector<int> leaves;
  for (int leaf = 0; leaf < num_leaves; ++leaf)
    if (chosen >> leaf & 1) leaves.push_back(leaf);
  return leaves;
}

}  // namespace

TEST_CASE("a member contributes the largest nodes of its leaves, of every set of up to 10 leaves") {
  for (int num_leaves = 1; num_leaves <= 10; ++num_leaves) {
    std::vector<tree_node> tree;
    append_tree(0, num_leaves, tree);
    unsigned all = (1U << num_leaves) - 1;
    for (unsigned chosen = 0; chosen <= all; ++chosen) {
      logical_rank_map map({leaves_in(chosen, num_leaves), leaves_in(all & ~chosen, num_leaves)});
      REQUIRE(map.nodes_of(0) == largest_nodes(tree, chosen));
      REQUIRE(map.nodes_of(1) == largest_nodes(tree, all & ~chosen));
      int next = 0;
      for (const auto& each : map.nodes()) {
        REQUIRE(each.node.first == std::exchange(next, next + each.node.count));
        auto own = map.nodes_of(each.member);
        REQUIRE(own[static_cast<std::size_t>(each.row)] == each.node);
      }
      REQUIRE(next == num_leaves);
    }
  }
}

TEST_CASE("replicas 0 and 1, 2, and 3 on three members are a node of two leaves and two leaves") {
  logical_rank_map map({{0, 1}, {2}, {3}});
  CHECK(map.nodes() == std::vector<member_node>{{{0, 2}, 0, 0}, {{2, 1}, 1, 0}, {{3, 1}, 2, 0}});
  CHECK(map.num_leaves() == 4);
  CHECK(map.num_members() == 3);
  CHECK(map.text() == "leaves {0, 1}, {2}, {3} on 3 members");
  CHECK(logical_rank_map(leaf_lists{{0}}).text() == "leaves {0} on 1 member");
  CHECK(logical_rank_map({{}, {0}}).text() == "leaves {}, {0} on 2 members");
}

TEST_CASE("members are the leaves of one tree where each hosts a node of one height, in order") {
  for (int members = 1; members <= 6; ++members)
    for (int each = 1; each <= 8; ++each) {
      leaf_lists lists(static_cast<std::size_t>(members));
      for (int leaf = 0; leaf < members * each; ++leaf)
        lists[static_cast<std::size_t>(leaf / each)].push_back(leaf);
      bool is_power_of_two = (each & (each - 1)) == 0;
      CHECK(logical_rank_map(lists).is_tree_of_members() == (members == 1 || is_power_of_two));
      std::ranges::reverse(lists);
      CHECK(logical_rank_map(lists).is_tree_of_members() == (members == 1));
    }
  CHECK_FALSE(logical_rank_map({{0, 1}, {2}}).is_tree_of_members());
  CHECK_FALSE(logical_rank_map({{0, 1}, {}}).is_tree_of_members());
  CHECK_FALSE(logical_rank_map({{0, 2}, {1, 3}}).is_tree_of_members());
}

TEST_CASE("a logical-rank map that is none is refused by leaf and members") {
  CHECK_REFUSED(logical_rank_map({{0, 1}, {1}}),
                "expected each leaf on one member, got leaf 1 on members 0 and 1");
  CHECK_REFUSED(logical_rank_map({{0, 3}, {1}}), "each of the leaves 0 to 3 on a member, got leaf 2 on none");
  CHECK_REFUSED(logical_rank_map({{0}, {2, 1}}),
                "ascending order, each once, got leaf 1 after leaf 2 on member 1");
  CHECK_REFUSED(logical_rank_map({{0, 0}}), "got leaf 0 after leaf 0 on member 0");
  CHECK_REFUSED(logical_rank_map({{0}, {-1}}), "got leaf -1 on member 1");
  CHECK_REFUSED(logical_rank_map({{0, 32767}}), "leaves from 0 to 32766, got leaf 32767 on member 0");
  CHECK_REFUSED(logical_rank_map({{}, {}}), "at least one leaf, got none on 2 members");
  CHECK_REFUSED(logical_rank_map(leaf_lists{{0}}).nodes_of(1), "a member in [0, 1), got 1");
}

TEST_CASE("logical-rank maps of the same leaves have signatures of their own") {
  std::vector<logical_rank_map> maps{
      logical_rank_map({{0, 1}, {2, 3}}),   logical_rank_map({{2, 3}, {0, 1}}),
      logical_rank_map({{0, 2}, {1, 3}}),   logical_rank_map({{0, 1, 2, 3}, {}}),
      logical_rank_map({{}, {0, 1, 2, 3}}), logical_rank_map({{0, 1}, {2, 3}, {}}),
      logical_rank_map({{0}, {1}})};
  for (std::size_t i = 0; i < maps.size(); ++i)
    for (std::size_t k = 0; k < maps.size(); ++k)
      CHECK((maps[i].signature() == maps[k].signature()) == (i == k));
  CHECK(logical_rank_map({{0, 1}, {2, 3}}).signature() == maps[0].signature());
  CHECK_THAT(text_of_logical_ranks(maps[0].signature()), ContainsSubstring("4 leaves mapped as "));
}
