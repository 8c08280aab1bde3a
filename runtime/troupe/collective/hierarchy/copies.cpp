#include <algorithm>

#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/hierarchy_call.hpp"
#include "troupe/collective/hierarchy/pipeline.hpp"

// all_gather, broadcast and barrier. S: bytes of the call, H: number of hosts.

namespace troupe::collective::hierarchy {
namespace {

/// Copies the parts of a host's members, which are one after the other, to their places in the output.
void copy_parts(const hierarchy_call& call, int host, const std::vector<std::byte>& parts) {
  const auto* from = parts.data();
  for (int member : call.topology.members_on(host)) {
    auto place = call.remote.output(part_of(call.operation(), member));
    copy_bytes(from, place.data(), place.size(), store_kind::cached);
    from += place.size();
  }
}

// A host's message has the parts of all its members, which they give each other inline. Each member receives
// H - 1 messages with all parts of other hosts.
algorithm all_gather_small(hierarchy_call& call) {
  auto own = call.operation().input.bytes();
  call.local.post_inline([&](int) { return own; });
  co_await until([&] { return call.local.all_arrived(); });
  host_messages messages;
  for (int host = 0; host < call.topology.num_hosts(); ++host) {
    std::size_t size = 0;
    for (int member : call.topology.members_on(host))
      size += call.bytes_of(part_of(call.operation(), member).count);
    messages.from_host.emplace_back(size);
  }
  auto& here = messages.from_host[static_cast<std::size_t>(call.host())];
  auto* to = here.data();
  for (int member : call.topology.members_on(call.host())) {
    auto size = call.bytes_of(part_of(call.operation(), member).count);
    const auto* part = member == call.member()
                           ? own.data()
                           : call.local.inline_from(call.topology.local_index_of(member), size);
    copy_bytes(part, std::exchange(to, to + size), size, store_kind::cached);
  }
  messages.own = here;
  auto exchange = exchange_host_messages(call, messages);
  co_await finished(exchange);
  for (int host = 0; host < call.topology.num_hosts(); ++host)
    copy_parts(call, host, messages.from_host[static_cast<std::size_t>(host)]);
}

/// Sends the own part to the other hosts, and copies each chunk to the local members' outputs when it has
/// been sent.
algorithm distribute_own(pipeline& flow) {
  auto& call = flow.call;
  auto own = call.operation().input.bytes();
  auto first = part_of(call.operation(), call.member()).first;
  const auto& owned = flow.plan.chunks_of(call.member());
  auto bytes_at = [&](const element_range& elements) {
    return own.subspan(call.bytes_of(elements.first - first), call.bytes_of(elements.count));
  };
  std::vector<std::vector<std::shared_ptr<const net::transfer>>> sent;
  for (std::uint32_t i = 0; i < owned.size(); ++i)
    sent.push_back(send_results(flow, owned[i], i, bytes_at(owned[i].elements)));
  for (std::uint32_t i = 0; i < owned.size(); ++i) {
    for (const auto& each : sent[i]) co_await until([&] { return each->is_done(); });
    auto bytes = bytes_at(owned[i].elements);
    for (auto* output : flow.output_addresses(owned[i].elements))
      if (output != bytes.data()) copy_bytes(bytes.data(), output, bytes.size(), store_kind::cached);
  }
}

// Each member owns its part. It sends each chunk of it to one partner on each other host, which copies it to
// all outputs there. A host receives the S bytes of the others' parts once.
algorithm all_gather_large(hierarchy_call& call) {
  call.local.post_tensors(shm::exposure::output);
  co_await until([&] { return call.local.all_arrived(); });
  call.local.begin_access();
  pipeline flow{.call = call,
                .plan = make_plan(call, owned_parts(call)),
                .outputs = all_local_indices(call),
                .results_to = all_hosts(call)};
  std::vector<algorithm> steps;
  steps.push_back(receive_results(flow));
  steps.push_back(distribute_own(flow));
  steps.push_back(host_dissemination(call));
  auto all = run_all(call, std::move(steps));
  co_await finished(all);
  call.local.copy_output();
}

// The root's local members get its elements inline. Each of them sends them to the members of other hosts
// that it serves.
algorithm broadcast_small(hierarchy_call& call) {
  auto root = call.operation().signature.root;
  auto root_host = call.topology.host_of(root);
  auto output = call.operation().output;
  auto bytes = output.bytes();
  call.local.post_inline([&](int) { return call.member() == root ? bytes : bytes.first(0); });
  co_await until([&] { return call.local.all_arrived(); });
  if (call.host() == root_host && call.member() != root)
    copy_bytes(call.local.inline_from(call.topology.local_index_of(root), bytes.size()), bytes.data(),
               bytes.size(), store_kind::cached);
  host_messages messages{.own = bytes, .source_host = root_host};
  messages.from_host.resize(static_cast<std::size_t>(call.topology.num_hosts()));
  auto& received = messages.from_host[static_cast<std::size_t>(root_host)];
  received.resize(bytes.size());
  auto exchange = exchange_host_messages(call, messages);
  co_await finished(exchange);
  if (call.host() != root_host) copy_bytes(received.data(), bytes.data(), bytes.size(), store_kind::cached);
  auto dissemination = host_dissemination(call);
  co_await finished(dissemination);
  co_await until([&] { return call.remote.all_transfers_done(); });
}

// The members of the other hosts own the elements. All members of the root's host send: each reads the root's
// input and sends the chunks for which it is the partner. An owner copies a chunk to the outputs on its host
// and sends it on to the remaining hosts. So the root's host sends S bytes, and every other host receives S.
algorithm broadcast_large(hierarchy_call& call) {
  call.local.post_tensors(shm::exposure::both);
  co_await until([&] { return call.local.all_arrived(); });
  call.local.begin_access();
  const auto& signature = call.operation().signature;
  auto root_host = call.topology.host_of(signature.root);
  auto other_hosts = all_hosts(call);
  std::erase(other_hosts, root_host);
  auto owned = ranges_by_host(call.topology, other_hosts, signature.count, call.remote.element_bytes());
  pipeline flow{.call = call,
                .plan = make_plan(call, owned),
                .outputs = all_local_indices(call),
                .results_to = other_hosts};
  std::vector<algorithm> steps;
  if (call.host() == root_host) {
    steps.push_back(send_input_of(flow, call.topology.local_index_of(signature.root)));
  } else {
    steps.push_back(receive_results(flow));
    steps.push_back(forward(flow, root_host));
  }
  steps.push_back(host_dissemination(call));
  auto all = run_all(call, std::move(steps));
  co_await finished(all);
  call.local.copy_output();
}

}  // namespace

algorithm all_gather(hierarchy_call call) {
  const auto& parts = call.operation().parts;
  bool fits = fits_inline(call, *std::ranges::max_element(parts));
  auto chosen = fits && is_small(call, call.operation().signature.count) ? all_gather_small(call)
                                                                         : all_gather_large(call);
  co_await finished(chosen);
}

algorithm broadcast(hierarchy_call call) {
  auto chosen =
      fits_inline(call, call.operation().signature.count) ? broadcast_small(call) : broadcast_large(call);
  co_await finished(chosen);
}

// First among the local members, in shared memory; then among hosts, in ceil(log2 H) rounds.
algorithm barrier(hierarchy_call call) {
  call.local.post_inline([](int) { return std::span<const std::byte>(); });
  co_await until([&] { return call.local.all_arrived(); });
  auto dissemination = host_dissemination(call);
  co_await finished(dissemination);
  co_await until([&] { return call.remote.all_transfers_done(); });
}

}  // namespace troupe::collective::hierarchy
