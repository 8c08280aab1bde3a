#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/ops/tree_reduction.hpp"

namespace troupe::collective {

/// A node of the reduction tree that one member can reduce by itself, since all its leaves are there.
struct member_node {
  tree_node node;
  int member = 0;
  int row = 0;  ///< its index among the nodes of the member
  bool operator==(const member_node&) const = default;
};

/// Which logical ranks each member of a group has. Each logical rank is a leaf of the reduction tree. L
/// leaves combine in the tree in which all_reduce combines L members (troupe/ops/tree_reduction.hpp),
/// whichever members have them: a member reduces the largest whole nodes of its leaves, and the rest is
/// combined from these nodes. So the bits depend on L only, not on the members. Of leaves {0, 1}, {2}, {3} on
/// three members, the first contributes the node 0 + 1. A value; the same on all members.
class logical_rank_map {
 public:
  /// leaves: by member, ascending. Each of the leaves 0 to L-1, 1 <= L < 32768, is on one member; a member
  /// may have none. Otherwise throws std::invalid_argument, which names the leaf and the members.
  explicit logical_rank_map(std::vector<std::vector<int>> leaves);

  int num_leaves() const { return num_leaves_; }
  int num_members() const { return static_cast<int>(leaves_.size()); }
  const std::vector<int>& leaves_of(member_index member) const;
  /// The largest nodes whose leaves are all on the member, ascending: what it contributes to the reduction.
  std::vector<tree_node> nodes_of(member_index member) const;
  /// The nodes of all members, in the order of their leaves: together they cover the tree.
  const std::vector<member_node>& nodes() const { return nodes_; }
  /// Whether each member contributes one node and these are the members of a tree over the members: then an
  /// all_reduce of the nodes gives the bits.
  bool is_tree_of_members() const;

  /// Equal for equal maps only, but for a chance of 2^-48; never 0.
  std::uint64_t signature() const;
  /// "leaves {0, 1}, {2}, {} on 3 members"
  std::string text() const;

 private:
  std::vector<std::vector<int>> leaves_;
  int num_leaves_ = 0;
  std::vector<member_node> nodes_;
};

/// What a signature() tells of a map of logical ranks: "4 leaves mapped as 5d21c0e8a94f".
std::string text_of_logical_ranks(std::uint64_t signature);

}  // namespace troupe::collective
