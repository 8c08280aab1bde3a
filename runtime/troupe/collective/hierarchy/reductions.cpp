#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/hierarchy_call.hpp"
#include "troupe/collective/hierarchy/pipeline.hpp"

// all_reduce, reduce_scatter and reduce. S: bytes of the call, H: number of hosts.
//
// Large calls all follow one scheme. The members expose their tensors to their local members. The plan says
// which member owns which chunks. Then four steps run side by side:
// 1. send_nodes: each member reduces, for the owners on other hosts, the nodes of its own host and sends
//    them.
// 2. reduce_owned: each owner receives the nodes of a chunk, reduces them together with its local members'
//    inputs, writes the result to the outputs on its host and sends it to the other hosts.
// 3. receive_results: each partner receives the results and copies them to the outputs on its host.
// 4. host_dissemination: no member leaves a call that others have not entered.

namespace troupe::collective::hierarchy {
namespace {

// The hosts own equal ranges, and on each host its members. A host whose members are one node of the tree
// sends and receives S bytes between two hosts, 2 S (H-1)/H between more.
algorithm all_reduce_large(hierarchy_call& call) {
  call.local.post_tensors(shm::exposure::both);
  co_await until([&] { return call.local.all_arrived(); });
  call.local.begin_access();
  auto owned = ranges_by_host(call.topology, all_hosts(call), call.operation().signature.count,
                              call.remote.element_bytes());
  pipeline flow{.call = call,
                .plan = make_plan(call, owned),
                .outputs = all_local_indices(call),
                .results_to = all_hosts(call)};
  std::vector<algorithm> steps;
  steps.push_back(receive_results(flow));
  steps.push_back(reduce_owned(flow, nullptr));
  steps.push_back(send_nodes(flow));
  steps.push_back(host_dissemination(call));
  auto all = run_all(call, std::move(steps));
  co_await finished(all);
  call.local.copy_output();
}

// Each member owns its part, and no other member needs the result. The output may be this part of the input,
// which only this member reads.
algorithm reduce_scatter_large(hierarchy_call& call, std::byte* result) {
  call.local.post_tensors(shm::exposure::input);
  co_await until([&] { return call.local.all_arrived(); });
  call.local.begin_access();
  pipeline flow{.call = call, .plan = make_plan(call, owned_parts(call))};
  std::vector<algorithm> steps;
  steps.push_back(reduce_owned(flow, result));
  steps.push_back(send_nodes(flow));
  steps.push_back(host_dissemination(call));
  auto all = run_all(call, std::move(steps));
  co_await finished(all);
}

/// Between two hosts the root's members own all elements, since all results go there anyway.
std::vector<int> owning_hosts(const hierarchy_call& call, int root_host) {
  return call.topology.num_hosts() == 2 ? std::vector{root_host} : all_hosts(call);
}

// As all_reduce, with the root's output as the only one. Owners on other hosts reduce into memory of their
// own.
algorithm reduce_large(hierarchy_call& call) {
  call.local.post_tensors(shm::exposure::both);
  co_await until([&] { return call.local.all_arrived(); });
  call.local.begin_access();
  const auto& signature = call.operation().signature;
  auto root_host = call.topology.host_of(signature.root);
  auto owned = ranges_by_host(call.topology, owning_hosts(call, root_host), signature.count,
                              call.remote.element_bytes());
  pipeline flow{.call = call, .plan = make_plan(call, owned), .results_to = {root_host}};
  std::vector<std::byte> reduced;
  if (call.host() == root_host) {
    flow.outputs = {call.topology.local_index_of(signature.root)};
  } else {
    std::int64_t count = 0;
    for (const auto& each : flow.plan.chunks_of(call.member())) count += each.elements.count;
    reduced.resize(call.bytes_of(count));
  }
  std::vector<algorithm> steps;
  steps.push_back(receive_results(flow));
  steps.push_back(reduce_owned(flow, reduced.empty() ? nullptr : reduced.data()));
  steps.push_back(send_nodes(flow));
  steps.push_back(host_dissemination(call));
  auto all = run_all(call, std::move(steps));
  co_await finished(all);
  call.local.copy_output();
}

algorithm reduce_small(hierarchy_call& call) {
  auto output = call.operation().output;
  auto root = call.operation().signature.root;
  auto* result = root == call.member() ? output.bytes().data() : nullptr;
  auto reduction = reduce_whole_inputs(call, {0, call.operation().signature.count}, result, root);
  co_await finished(reduction);
  auto dissemination = host_dissemination(call);
  co_await finished(dissemination);
  co_await until([&] { return call.remote.all_transfers_done(); });
}

}  // namespace

algorithm all_reduce(hierarchy_call call) {
  auto count = call.operation().signature.count;
  auto output = call.operation().output;
  auto chosen = is_small(call, count) ? reduce_whole_inputs(call, {0, count}, output.bytes().data(), -1)
                                      : all_reduce_large(call);
  co_await finished(chosen);
}

algorithm reduce_scatter(hierarchy_call call) {
  auto output = call.operation().output;
  auto* result = output.bytes().data();
  auto chosen = is_small(call, call.operation().signature.count)
                    ? reduce_whole_inputs(call, part_of(call.operation(), call.member()), result, -1)
                    : reduce_scatter_large(call, result);
  co_await finished(chosen);
}

algorithm reduce(hierarchy_call call) {
  auto chosen = is_small(call, call.operation().signature.count) ? reduce_small(call) : reduce_large(call);
  co_await finished(chosen);
}

}  // namespace troupe::collective::hierarchy
