#include "troupe/collective/hierarchy/pipeline.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

namespace troupe::collective::hierarchy {
namespace {

using net::payload;
using net::transfer;

/// The inputs of the local members, by local index, from the first of `elements` on.
std::vector<const std::byte*> inputs_at(hierarchy_call& call, const element_range& elements) {
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < call.num_local(); ++i)
    inputs.push_back(call.local.input_of(i) + call.bytes_of(elements.first));
  return inputs;
}

/// How many chunks are in flight at a time.
std::size_t window(const hierarchy_call& call) {
  return static_cast<std::size_t>(std::max(1, call.remote.sizes().blocks_ahead));
}

int partner(const chunk& planned, int host) { return planned.partners[static_cast<std::size_t>(host)]; }

/// A chunk of an owner on another host.
struct remote_chunk {
  int owner;
  std::uint32_t number;
  const chunk* planned;

  const element_range& elements() const { return planned->elements; }
};

/// The chunks of owners on other hosts for which this member is the partner on this host. In rounds: the
/// first chunks of all owners, then the second ones, so that all owners can begin early.
std::vector<remote_chunk> served_chunks(const pipeline& flow) {
  std::vector<remote_chunk> served;
  for (std::uint32_t number = 0; number < flow.plan.max_chunks(); ++number)
    for (int distance = 1; distance < flow.call.topology.num_members(); ++distance) {
      auto owner = flow.call.remote.after(distance);
      const auto& all = flow.plan.chunks_of(owner);
      if (flow.call.topology.host_of(owner) == flow.call.host() || number >= all.size()) continue;
      if (partner(all[number], flow.call.host()) == flow.call.member())
        served.push_back({owner, number, &all[number]});
    }
  return served;
}

/// An own chunk whose nodes are being received from the other hosts.
struct pending_chunk {
  std::vector<std::vector<std::byte>> nodes;  ///< [num_hosts] what each host has sent
  std::vector<std::shared_ptr<const transfer>> receives;

  bool is_complete() {
    while (!receives.empty() && receives.back()->is_done()) receives.pop_back();
    return receives.empty();
  }
};

void receive_chunk(hierarchy_call& call, const chunk& owned, std::uint32_t number, pending_chunk& into) {
  into.nodes.resize(static_cast<std::size_t>(call.topology.num_hosts()));
  for (int host = 0; host < call.topology.num_hosts(); ++host) {
    if (host == call.host()) continue;
    auto& nodes = into.nodes[static_cast<std::size_t>(host)];
    nodes.resize(bytes_of_nodes(call, host, owned.elements.count));
    into.receives.push_back(call.remote.receive(partner(owned, host), payload::inputs, number, nodes));
  }
}

/// Copies elements of the first output to the other outputs.
void copy_to_other_outputs(const pipeline& flow, const element_range& elements) {
  auto outputs = flow.output_addresses(elements);
  for (std::size_t i = 1; i < outputs.size(); ++i)
    copy_bytes(outputs[0], outputs[i], flow.call.bytes_of(elements.count), store_kind::cached);
}

}  // namespace

std::vector<std::byte*> pipeline::output_addresses(const element_range& elements) const {
  std::vector<std::byte*> addresses;
  for (int each : outputs) addresses.push_back(call.local.output_of(each) + call.bytes_of(elements.first));
  return addresses;
}

// Nodes are reduced into a few buffers, which are used again as soon as their message has been sent.
algorithm send_nodes(pipeline& flow) {
  auto& call = flow.call;
  struct buffer {
    std::vector<std::byte> nodes;
    std::shared_ptr<const transfer> sent;
  };
  std::vector<buffer> buffers(window(call) * static_cast<std::size_t>(call.topology.num_hosts() - 1));
  std::size_t num_used = 0;
  for (const auto& each : served_chunks(flow)) {
    const auto& elements = each.elements();
    auto& next = buffers[num_used++ % buffers.size()];
    co_await until([&] { return !next.sent || next.sent->is_done(); });
    next.nodes.resize(bytes_of_nodes(call, call.host(), elements.count));
    reduce_own_nodes(call, inputs_at(call, elements), elements.count, next.nodes.data());
    next.sent = call.remote.send(each.owner, payload::inputs, each.number, next.nodes);
  }
  for (auto& each : buffers) co_await until([&] { return !each.sent || each.sent->is_done(); });
}

// The copy is cut into as many pieces as there are messages. One piece is copied after each message that has
// been sent, so that copying does not delay the messages.
algorithm send_input_of(pipeline& flow, int source) {
  auto& call = flow.call;
  std::vector<std::shared_ptr<const transfer>> sent;
  for (const auto& each : served_chunks(flow)) {
    const auto& elements = each.elements();
    const auto* input = call.local.input_of(source) + call.bytes_of(elements.first);
    sent.push_back(
        call.remote.send(each.owner, payload::inputs, each.number, {input, call.bytes_of(elements.count)}));
  }
  if (source == call.local_index()) co_return;
  auto num_pieces = std::max<int>(1, static_cast<int>(sent.size()));
  for (int i = 0; i < num_pieces; ++i) {
    if (!sent.empty()) co_await until([&] { return sent[static_cast<std::size_t>(i)]->is_done(); });
    auto piece =
        range_of_member(call.operation().signature.count, call.remote.element_bytes(), num_pieces, i);
    auto first = call.bytes_of(piece.first);
    copy_bytes(call.local.input_of(source) + first, call.local.output_of(call.local_index()) + first,
               call.bytes_of(piece.count), store_kind::cached);
  }
}

// Only the owner reads these elements of the local members' inputs, so they may be the outputs too.
algorithm reduce_owned(pipeline& flow, std::byte* result) {
  auto& call = flow.call;
  const auto& owned = flow.plan.chunks_of(call.member());
  std::vector<pending_chunk> pending(std::min(owned.size(), window(call)));
  for (std::uint32_t i = 0; i < pending.size(); ++i) receive_chunk(call, owned[i], i, pending[i]);
  for (std::uint32_t i = 0; i < owned.size(); ++i) {
    auto& next = pending[i % pending.size()];
    co_await until([&] { return next.is_complete(); });
    const auto& elements = owned[i].elements;
    std::vector<const std::byte*> nodes;
    for (const auto& each : next.nodes) nodes.push_back(each.data());
    auto outputs = result ? std::vector{result + call.bytes_of(elements.first - owned[0].elements.first)}
                          : flow.output_addresses(elements);
    reduce_with_nodes(call, inputs_at(call, elements), nodes, elements.count, outputs);
    send_results(flow, owned[i], i, {outputs[0], call.bytes_of(elements.count)});
    auto following = i + static_cast<std::uint32_t>(pending.size());
    if (following < owned.size()) receive_chunk(call, owned[following], following, next);
  }
}

std::vector<std::shared_ptr<const transfer>> send_results(pipeline& flow, const chunk& owned,
                                                          std::uint32_t number,
                                                          std::span<const std::byte> result) {
  std::vector<std::shared_ptr<const transfer>> sent;
  for (int host : flow.results_to)
    if (host != flow.call.host())
      sent.push_back(flow.call.remote.send(partner(owned, host), payload::results, number, result));
  return sent;
}

// An owner sends a result only after it has received this host's nodes, for which the inputs have been read.
// So the inputs may be the outputs.
algorithm receive_results(pipeline& flow) {
  auto& call = flow.call;
  if (flow.outputs.empty()) co_return;
  std::deque<std::pair<const chunk*, std::shared_ptr<const transfer>>> receives;
  for (const auto& each : served_chunks(flow)) {
    const auto& elements = each.elements();
    std::span<std::byte> output(flow.output_addresses(elements)[0], call.bytes_of(elements.count));
    receives.emplace_back(each.planned,
                          call.remote.receive(each.owner, payload::results, each.number, output));
  }
  for (; !receives.empty(); receives.pop_front()) {
    co_await until([&] { return receives.front().second->is_done(); });
    copy_to_other_outputs(flow, receives.front().first->elements);
  }
}

algorithm forward(pipeline& flow, int host) {
  auto& call = flow.call;
  const auto& owned = flow.plan.chunks_of(call.member());
  std::vector<std::shared_ptr<const transfer>> receives;
  for (std::uint32_t i = 0; i < owned.size(); ++i) {
    const auto& elements = owned[i].elements;
    std::span<std::byte> output(flow.output_addresses(elements)[0], call.bytes_of(elements.count));
    receives.push_back(call.remote.receive(partner(owned[i], host), payload::inputs, i, output));
  }
  for (std::uint32_t i = 0; i < owned.size(); ++i) {
    co_await until([&] { return receives[i]->is_done(); });
    const auto& elements = owned[i].elements;
    send_results(flow, owned[i], i, {flow.output_addresses(elements)[0], call.bytes_of(elements.count)});
    copy_to_other_outputs(flow, elements);
  }
}

algorithm run_all(hierarchy_call& call, std::vector<algorithm> steps) {
  co_await until([&] {
    bool have_ended = true;
    for (auto& each : steps) have_ended = each.advance() && have_ended;
    return have_ended;
  });
  co_await until([&] { return call.remote.all_transfers_done(); });
  call.local.finish_access();
  co_await until([&] { return call.local.all_finished(); });
}

std::vector<int> all_hosts(const hierarchy_call& call) {
  std::vector<int> hosts(static_cast<std::size_t>(call.topology.num_hosts()));
  std::iota(hosts.begin(), hosts.end(), 0);
  return hosts;
}

std::vector<int> all_local_indices(const hierarchy_call& call) {
  std::vector<int> indices;
  for (int i = 0; i < call.num_local(); ++i) indices.push_back((call.local_index() + i) % call.num_local());
  return indices;
}

chunk_plan make_plan(const hierarchy_call& call, const std::vector<element_range>& owned) {
  return {call.topology, owned, {call.remote.element_bytes(), call.remote.sizes().block}};
}

std::vector<element_range> owned_parts(const hierarchy_call& call) {
  std::vector<element_range> parts;
  for (int i = 0; i < call.topology.num_members(); ++i) parts.push_back(part_of(call.operation(), i));
  return parts;
}

}  // namespace troupe::collective::hierarchy
