#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/host_messages.hpp"
#include "troupe/collective/hierarchy/large_call.hpp"
#include "troupe/collective/hierarchy/whole_inputs.hpp"

namespace troupe::hierarchy {
namespace {

/// Who takes the elements: of two hosts the root's, which gets them all anyway; of more all.
std::vector<int> taking_hosts(const site& at, int root_host) {
  return at.where.num_hosts() == 2 ? std::vector{root_host} : all_hosts(at);
}

// As all_reduce, with the root's output as the only one.
algorithm reduce_large(site& at) {
  at.near.come_with_tensors(direct::exposed::both);
  co_await until([&] { return at.near.everyone_is_here(); });
  at.near.reach();
  const auto& signature = at.what().signature;
  auto root_host = at.where.host_of(signature.root);
  auto hosts = taking_hosts(at, root_host);
  flow in{.at = at,
          .cut = divided(at, shares_by_host(at.where, hosts, signature.count, at.far.element_bytes())),
          .results_to = {root_host}};
  std::vector<std::byte> taken;
  if (at.host() == root_host) {
    in.outputs = {at.where.place_of(signature.root)};
  } else {
    std::int64_t count = 0;
    for (const auto& each : in.cut.of(at.member())) count += each.elements.count;
    taken.resize(at.bytes_of(count));
  }
  std::vector<algorithm> parts;
  parts.push_back(take_results(in));
  parts.push_back(reduce_taken(in, taken.empty() ? nullptr : taken.data()));
  parts.push_back(send_nodes(in));
  parts.push_back(every_host_has_come(at));
  auto all = all_finished(at, std::move(parts));
  co_await finished(all);
  at.near.take_output();
}

algorithm reduce_small(site& at) {
  auto output = at.what().output;
  auto root = at.what().signature.root;
  auto* result = root == at.member() ? output.bytes().data() : nullptr;
  auto part = reduce_whole_inputs(at, {0, at.what().signature.count}, result, root);
  co_await finished(part);
  auto arrivals = every_host_has_come(at);
  co_await finished(arrivals);
  co_await until([&] { return at.far.all_done(); });
}

}  // namespace

algorithm reduce(site at) {
  auto part = is_small(at, at.what().signature.count) ? reduce_small(at) : reduce_large(at);
  co_await finished(part);
}

}  // namespace troupe::hierarchy
