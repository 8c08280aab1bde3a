#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/host_messages.hpp"
#include "troupe/collective/hierarchy/large_call.hpp"

namespace troupe::hierarchy {
namespace {

algorithm broadcast_small(site& at) {
  auto root = at.what().signature.root;
  auto root_host = at.where.host_of(root);
  auto output = at.what().output;
  auto bytes = output.bytes();
  at.near.come_with([&](int) { return at.member() == root ? bytes : bytes.first(0); });
  co_await until([&] { return at.near.everyone_is_here(); });
  if (at.host() == root_host && at.member() != root)
    copy_bytes(at.near.left_by(at.where.place_of(root), bytes.size()), bytes.data(), bytes.size(),
               store_kind::cached);
  host_messages said{.own = bytes, .speaker = root_host};
  said.of_host.resize(static_cast<std::size_t>(at.where.num_hosts()));
  auto& heard = said.of_host[static_cast<std::size_t>(root_host)];
  heard.resize(bytes.size());
  auto exchange = exchange_messages(at, said);
  co_await finished(exchange);
  if (at.host() != root_host) copy_bytes(heard.data(), bytes.data(), bytes.size(), store_kind::cached);
  auto arrivals = every_host_has_come(at);
  co_await finished(arrivals);
  co_await until([&] { return at.far.all_done(); });
}

// The root's neighbours send its elements in its place: each its share to the takers on the other hosts, who
// pass them on to each other.
algorithm broadcast_large(site& at) {
  at.near.come_with_tensors(direct::exposed::both);
  co_await until([&] { return at.near.everyone_is_here(); });
  at.near.reach();
  const auto& signature = at.what().signature;
  auto root_host = at.where.host_of(signature.root), root_place = at.where.place_of(signature.root);
  auto hosts = all_hosts(at);
  std::erase(hosts, root_host);
  flow in{.at = at,
          .cut = divided(at, shares_by_host(at.where, hosts, signature.count, at.far.element_bytes())),
          .outputs = all_places(at),
          .results_to = hosts};
  std::vector<algorithm> parts;
  if (at.host() == root_host) {
    parts.push_back(send_input_of(in, root_place));
  } else {
    parts.push_back(take_results(in));
    parts.push_back(pass_on(in, root_host));
  }
  parts.push_back(every_host_has_come(at));
  auto all = all_finished(at, std::move(parts));
  co_await finished(all);
  at.near.take_output();
}

}  // namespace

algorithm broadcast(site at) {
  auto part = fits_beside_notes(at, at.what().signature.count) ? broadcast_small(at) : broadcast_large(at);
  co_await finished(part);
}

}  // namespace troupe::hierarchy
