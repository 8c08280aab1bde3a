// The nodes of the reduction tree that some members can reduce separately.
#include <algorithm>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe {
namespace {

void add_nodes_within(std::span<const int> members, int first, int end, std::vector<tree_node>& found) {
  auto from = std::ranges::lower_bound(members, first);
  auto num_inside = std::ranges::lower_bound(members, end) - from;
  if (num_inside == 0) return;
  if (num_inside == end - first) return found.push_back({first, end - first});
  auto middle = first + left_child_count(end - first);
  add_nodes_within(members, first, middle, found);
  add_nodes_within(members, middle, end, found);
}

}  // namespace

std::vector<tree_node> nodes_within(std::span<const int> members, int num_members) {
  std::vector<tree_node> found;
  add_nodes_within(members, 0, num_members, found);
  return found;
}

dtype node_type(const tree_node& node, dtype type) {
  return node.count > 1 && is_floating(type) ? dtype::f32 : type;
}

}  // namespace troupe
