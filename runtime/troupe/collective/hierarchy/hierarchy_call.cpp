#include "troupe/collective/hierarchy/hierarchy_call.hpp"

#include <algorithm>

namespace troupe::hierarchy {
namespace {

std::size_t bytes_of_node(const hierarchy_call& call, const tree_node& node, std::int64_t count) {
  return static_cast<std::size_t>(count) * size_bytes(node_type(node, call.operation().signature.type));
}

}  // namespace

bool fits_inline(const hierarchy_call& call, std::int64_t count) {
  return call.bytes_of(count) <= shm::control_block::max_inline_bytes;
}

std::size_t bytes_of_nodes(const hierarchy_call& call, int host, std::int64_t count) {
  std::size_t size = 0;
  for (const auto& node : call.layout.nodes_on(host)) size += bytes_of_node(call, node, count);
  return size;
}

void reduce_own_nodes(const hierarchy_call& call, std::span<const std::byte* const> inputs,
                      std::int64_t count, std::byte* nodes) {
  const auto& signature = call.operation().signature;
  for (const auto& node : call.layout.nodes_on(call.host())) {
    auto first = static_cast<std::size_t>(call.layout.local_index_of(node.first));
    reduce_node(inputs.subspan(first, static_cast<std::size_t>(node.count)), nodes, count, signature.type,
                signature.op);
    nodes += bytes_of_node(call, node, count);
  }
}

void reduce_with_nodes(const hierarchy_call& call, std::span<const std::byte* const> inputs,
                       std::span<const std::byte* const> nodes, std::int64_t count,
                       std::span<std::byte* const> outputs) {
  std::vector<std::pair<int, node_elements>> found;  // with its first member
  for (int host = 0; host < call.layout.num_hosts(); ++host) {
    if (host == call.host()) {
      for (int member : call.layout.members_on(host))
        found.push_back({member, {inputs[static_cast<std::size_t>(call.layout.local_index_of(member))], 1}});
      continue;
    }
    const auto* place = nodes[static_cast<std::size_t>(host)];
    for (const auto& node : call.layout.nodes_on(host)) {
      found.push_back({node.first, {place, node.count}});
      place += bytes_of_node(call, node, count);
    }
  }
  std::ranges::sort(found, {}, &std::pair<int, node_elements>::first);
  std::vector<node_elements> in_order;
  for (const auto& [first, elements] : found) in_order.push_back(elements);
  const auto& signature = call.operation().signature;
  tree_reduce(in_order, outputs, count, signature.type, signature.op);
}

}  // namespace troupe::hierarchy
