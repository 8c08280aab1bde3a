#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/host_messages.hpp"
#include "troupe/collective/hierarchy/large_call.hpp"
#include "troupe/collective/hierarchy/whole_inputs.hpp"

namespace troupe::hierarchy {
namespace {

// Each member takes its part. The output may be its place in the input: nobody else looks at that.
algorithm reduce_scatter_large(site& at, std::byte* result) {
  at.near.come_with_tensors(direct::exposed::input);
  co_await until([&] { return at.near.everyone_is_here(); });
  at.near.reach();
  flow in{.at = at, .cut = divided(at, own_parts(at))};
  std::vector<algorithm> parts;
  parts.push_back(reduce_taken(in, result));
  parts.push_back(send_nodes(in));
  parts.push_back(every_host_has_come(at));
  auto all = all_finished(at, std::move(parts));
  co_await finished(all);
}

}  // namespace

algorithm reduce_scatter(site at) {
  auto output = at.what().output;
  auto* result = output.bytes().data();
  auto part = is_small(at, at.what().signature.count)
                  ? reduce_whole_inputs(at, part_of(at.what(), at.member()), result, -1)
                  : reduce_scatter_large(at, result);
  co_await finished(part);
}

}  // namespace troupe::hierarchy
