#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/host_messages.hpp"
#include "troupe/collective/hierarchy/large_call.hpp"
#include "troupe/collective/hierarchy/whole_inputs.hpp"

namespace troupe::hierarchy {
namespace {

// The hosts take equal shares, and on each host its members. S: bytes of the call, H: hosts; a host whose
// members are one node of the tree sends S and receives S bytes, for two hosts, 2 S (H-1)/H for more.
algorithm all_reduce_large(site& at) {
  at.near.come_with_tensors(direct::exposed::both);
  co_await until([&] { return at.near.everyone_is_here(); });
  at.near.reach();
  auto count = at.what().signature.count;
  flow in{.at = at,
          .cut = divided(at, shares_by_host(at.where, all_hosts(at), count, at.far.element_bytes())),
          .outputs = all_places(at),
          .results_to = all_hosts(at)};
  std::vector<algorithm> parts;
  parts.push_back(take_results(in));
  parts.push_back(reduce_taken(in, nullptr));
  parts.push_back(send_nodes(in));
  parts.push_back(every_host_has_come(at));
  auto all = all_finished(at, std::move(parts));
  co_await finished(all);
  at.near.take_output();
}

}  // namespace

algorithm all_reduce(site at) {
  auto count = at.what().signature.count;
  auto output = at.what().output;
  auto part = is_small(at, count) ? reduce_whole_inputs(at, {0, count}, output.bytes().data(), -1)
                                  : all_reduce_large(at);
  co_await finished(part);
}

}  // namespace troupe::hierarchy
