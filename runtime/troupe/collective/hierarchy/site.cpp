#include "troupe/collective/hierarchy/site.hpp"

#include <algorithm>

namespace troupe::hierarchy {
namespace {

std::size_t bytes_of_node(const site& at, const tree_node& node, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_bytes(node_type(node, at.what().signature.type));
}

}  // namespace

bool fits_beside_notes(const site& at, std::int64_t count) {
  return at.bytes_of(count) <= direct::board::small_bytes;
}

std::size_t bytes_of_nodes(const site& at, int host, std::int64_t count) {
  std::size_t size = 0;
  for (const auto& node : at.where.nodes_on(host)) size += bytes_of_node(at, node, count);
  return size;
}

void reduce_own_nodes(const site& at, std::span<const std::byte* const> inputs, std::int64_t count,
                      std::byte* nodes) {
  const auto& signature = at.what().signature;
  for (const auto& node : at.where.nodes_on(at.host())) {
    auto first = static_cast<std::size_t>(at.where.place_of(node.first));
    reduce_node(inputs.subspan(first, static_cast<std::size_t>(node.count)), nodes, count, signature.type,
                signature.op);
    nodes += bytes_of_node(at, node, count);
  }
}

void reduce_all(const site& at, std::span<const std::byte* const> inputs,
                std::span<const std::byte* const> nodes, std::int64_t count,
                std::span<std::byte* const> outputs) {
  std::vector<std::pair<int, node_elements>> found;  // with its first member
  for (int host = 0; host < at.where.num_hosts(); ++host) {
    if (host == at.host()) {
      for (int member : at.where.members_on(host))
        found.push_back({member, {inputs[static_cast<std::size_t>(at.where.place_of(member))], 1}});
      continue;
    }
    const auto* place = nodes[static_cast<std::size_t>(host)];
    for (const auto& node : at.where.nodes_on(host)) {
      found.push_back({node.first, {place, node.count}});
      place += bytes_of_node(at, node, count);
    }
  }
  std::ranges::sort(found, {}, &std::pair<int, node_elements>::first);
  std::vector<node_elements> in_order;
  for (const auto& [first, elements] : found) in_order.push_back(elements);
  const auto& signature = at.what().signature;
  tree_reduce(in_order, outputs, count, signature.type, signature.op);
}

}  // namespace troupe::hierarchy
