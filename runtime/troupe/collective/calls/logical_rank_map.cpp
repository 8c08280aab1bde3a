#include "troupe/collective/calls/logical_rank_map.hpp"

#include <algorithm>
#include <cstdio>

#include "troupe/error/errors.hpp"
#include "troupe/hash/fnv1a.hpp"

namespace troupe::collective {
namespace {

constexpr int max_leaves = 32767;

std::string on_member(std::size_t member) { return "on member " + std::to_string(member); }

void require_ascending(const std::vector<int>& leaves, std::size_t member) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i] < 0 || leaves[i] >= max_leaves)
      throw_invalid("logical_rank_map", "leaves from 0 to " + std::to_string(max_leaves - 1),
                    "leaf " + std::to_string(leaves[i]) + ' ' + on_member(member));
    if (i == 0 || leaves[i] > leaves[i - 1]) continue;
    throw_invalid("logical_rank_map", "the leaves of a member in ascending order, each once",
                  "leaf " + std::to_string(leaves[i]) + " after leaf " + std::to_string(leaves[i - 1]) + ' ' +
                      on_member(member));
  }
}

/// The number of leaves.
int require_each_once(const std::vector<std::vector<int>>& leaves) {
  constexpr int no_member = -1;
  std::vector<int> host_of;
  for (std::size_t member = 0; member < leaves.size(); ++member) {
    require_ascending(leaves[member], member);
    for (int leaf : leaves[member]) {
      auto at = static_cast<std::size_t>(leaf);
      if (at >= host_of.size()) host_of.resize(at + 1, no_member);
      if (host_of[at] != no_member)
        throw_invalid("logical_rank_map", "each leaf on one member",
                      "leaf " + std::to_string(leaf) + " on members " + std::to_string(host_of[at]) +
                          " and " + std::to_string(member));
      host_of[at] = static_cast<int>(member);
    }
  }
  if (host_of.empty())
    throw_invalid("logical_rank_map", "at least one leaf",
                  "none on " + std::to_string(leaves.size()) + " members");
  auto missing = std::ranges::find(host_of, no_member) - host_of.begin();
  if (missing != static_cast<std::ptrdiff_t>(host_of.size()))
    throw_invalid("logical_rank_map",
                  "each of the leaves 0 to " + std::to_string(host_of.size() - 1) + " on a member",
                  "leaf " + std::to_string(missing) + " on none");
  return static_cast<int>(host_of.size());
}

}  // namespace

logical_rank_map::logical_rank_map(std::vector<std::vector<int>> leaves)
    : leaves_(std::move(leaves)), num_leaves_(require_each_once(leaves_)) {
  for (int member = 0; member < num_members(); ++member) {
    int row = 0;
    for (const auto& node : nodes_of(member)) nodes_.push_back({node, member, row++});
  }
  std::ranges::sort(nodes_, {}, [](const member_node& each) { return each.node.first; });
}

const std::vector<int>& logical_rank_map::leaves_of(member_index member) const {
  if (member < 0 || member >= num_members())
    throw_invalid("logical_rank_map", "a member in [0, " + std::to_string(num_members()) + ")",
                  std::to_string(member));
  return leaves_[static_cast<std::size_t>(member)];
}

std::vector<tree_node> logical_rank_map::nodes_of(member_index member) const {
  return nodes_within(leaves_of(member), num_leaves_);
}

/// A tree of n k leaves splits at nodes of k leaves as a tree of n members does if k is a power of two. If it
/// is not, no two members have whole nodes of k leaves.
bool logical_rank_map::is_tree_of_members() const {
  if (nodes_.size() != leaves_.size()) return false;
  for (int member = 0; member < num_members(); ++member) {
    const auto& at = nodes_[static_cast<std::size_t>(member)];
    if (at.member != member || at.node.count != nodes_[0].node.count) return false;
  }
  return true;
}

/// A hash of the leaves in the upper 48 bits, their number in the lower 16.
std::uint64_t logical_rank_map::signature() const {
  fnv1a hash;
  for (const auto& leaves : leaves_) {
    for (int leaf : leaves) hash.add(static_cast<std::uint64_t>(leaf) + 1);
    hash.add(0);
  }
  return (hash.value() >> 16 << 16) | static_cast<std::uint64_t>(num_leaves_);
}

std::string logical_rank_map::text() const {
  std::string made;
  for (const auto& leaves : leaves_) {
    made += made.empty() ? "leaves {" : ", {";
    for (int leaf : leaves) made += (made.back() == '{' ? "" : ", ") + std::to_string(leaf);
    made += '}';
  }
  return made + " on " + std::to_string(num_members()) + (num_members() == 1 ? " member" : " members");
}

std::string text_of_logical_ranks(std::uint64_t signature) {
  char hash[13];
  std::snprintf(hash, sizeof hash, "%012llx", static_cast<unsigned long long>(signature >> 16));
  return std::to_string(signature & 0xffff) + " leaves mapped as " + hash;
}

}  // namespace troupe::collective
