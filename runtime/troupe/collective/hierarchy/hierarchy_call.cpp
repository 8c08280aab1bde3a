#include "troupe/collective/hierarchy/hierarchy_call.hpp"

#include <algorithm>

namespace troupe::collective::hierarchy {

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
  for (const auto& node : call.topology.nodes_on(host)) size += bytes_of_node(call, node, count);
  return size;
}

void reduce_own_nodes(const hierarchy_call& call, std::span<const std::byte* const> inputs,
                      std::int64_t count, std::byte* nodes) {
  const auto& signature = call.operation().signature;
  for (const auto& node : call.topology.nodes_on(call.host())) {
    auto first = static_cast<std::size_t>(call.topology.local_index_of(node.first));
    reduce_node(inputs.subspan(first, static_cast<std::size_t>(node.count)), nodes, count, signature.type,
                signature.op);
    nodes += bytes_of_node(call, node, count);
  }
}

void reduce_with_nodes(const hierarchy_call& call, std::span<const std::byte* const> inputs,
                       std::span<const std::byte* const> nodes, std::int64_t count,
                       std::span<std::byte* const> outputs) {
  std::vector<std::pair<int, node_elements>> found;  // with its first member
  for (int host = 0; host < call.topology.num_hosts(); ++host) {
    if (host == call.host()) {
      for (int member : call.topology.members_on(host))
        found.push_back(
            {member, {inputs[static_cast<std::size_t>(call.topology.local_index_of(member))], 1}});
      continue;
    }
    const auto* place = nodes[static_cast<std::size_t>(host)];
    for (const auto& node : call.topology.nodes_on(host)) {
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

namespace {

using net::payload;

/// The inputs of the local members, by local index: inline in the slots, or in their tensors.
std::vector<const std::byte*> local_inputs(hierarchy_call& call, bool are_inline) {
  auto own = call.operation().input.bytes();
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < call.num_local(); ++i)
    inputs.push_back(!are_inline               ? call.local.input_of(i)
                     : i == call.local_index() ? own.data()
                                               : call.local.inline_from(i, own.size()));
  return inputs;
}

/// The members of `host` to which this member sends the message of its own host.
std::vector<int> served_on(const hierarchy_call& call, int host) {
  std::vector<int> served;
  for (int member : call.topology.members_on(host))
    if (call.topology.sender_for(member, call.host()) == call.member()) served.push_back(member);
  return served;
}

}  // namespace

bool is_small(const hierarchy_call& call, std::int64_t count) {
  return call.bytes_of(count) <=
         std::max(call.remote.sizes().whole_inputs, shm::control_block::max_inline_bytes);
}

algorithm exchange_host_messages(hierarchy_call& call, host_messages& messages) {
  bool sends = messages.source_host < 0 || messages.source_host == call.host();
  bool receives = messages.receiver < 0 || messages.receiver == call.member();
  for (int host = 0; host < call.topology.num_hosts(); ++host) {
    if (host == call.host()) continue;
    if (receives && (messages.source_host < 0 || messages.source_host == host))
      call.remote.receive(call.topology.sender_for(call.member(), host), payload::inputs, 0,
                          messages.from_host[static_cast<std::size_t>(host)]);
    if (!sends) continue;
    for (int member : served_on(call, host))
      if (messages.receiver < 0 || messages.receiver == member)
        call.remote.send(member, payload::inputs, 0, messages.own);
  }
  co_await until([&] { return call.remote.all_transfers_done(); });
}

algorithm host_dissemination(hierarchy_call& call) {
  int num_hosts = call.topology.num_hosts();
  std::uint32_t round = 0;
  for (int distance = 1; distance < num_hosts; distance *= 2, ++round) {
    for (int member : served_on(call, (call.host() + distance) % num_hosts))
      call.remote.send(member, payload::arrivals, round, {});
    auto before = (call.host() + num_hosts - distance) % num_hosts;
    auto arrival =
        call.remote.receive(call.topology.sender_for(call.member(), before), payload::arrivals, round, {});
    co_await until([&] { return arrival->is_done(); });
  }
}

// 1. Each member gets copies of its local members' inputs, inline or from their tensors. No member reads
// these
//    tensors afterwards, so an input may be the output.
// 2. Each member reduces the nodes of its own host, and exchanges them with the other hosts.
// 3. Each receiver reduces everything.
algorithm reduce_whole_inputs(hierarchy_call& call, element_range wanted, std::byte* result, int receiver) {
  auto own = call.operation().input.bytes();
  auto count = call.operation().signature.count;
  bool are_inline = fits_inline(call, count);
  if (are_inline)
    call.local.post_inline([&](int) { return own; });
  else
    call.local.post_tensors(shm::exposure::input);
  co_await until([&] { return call.local.all_arrived(); });
  if (!are_inline) call.local.begin_access();
  std::vector<std::vector<std::byte>> copies;
  for (const auto* each : local_inputs(call, are_inline)) copies.emplace_back(each, each + own.size());
  if (!are_inline) call.local.finish_access();
  std::vector<const std::byte*> inputs;
  for (const auto& each : copies) inputs.push_back(each.data());
  std::vector<std::byte> nodes(bytes_of_nodes(call, call.host(), count));
  reduce_own_nodes(call, inputs, count, nodes.data());

  host_messages messages{.own = nodes, .receiver = receiver};
  for (int host = 0; host < call.topology.num_hosts(); ++host)
    messages.from_host.emplace_back(host == call.host() ? 0 : bytes_of_nodes(call, host, count));
  auto exchange = exchange_host_messages(call, messages);
  co_await finished(exchange);
  if (!are_inline) co_await until([&] { return call.local.all_finished(); });
  if (receiver >= 0 && receiver != call.member()) co_return;

  std::vector<const std::byte*> received;
  for (const auto& each : messages.from_host) received.push_back(each.data());
  std::vector<std::byte> reduced(own.size());
  auto* to = reduced.data();
  reduce_with_nodes(call, inputs, received, count, {&to, 1});
  copy_bytes(reduced.data() + call.bytes_of(wanted.first), result, call.bytes_of(wanted.count),
             store_kind::cached);
}

}  // namespace troupe::collective::hierarchy
