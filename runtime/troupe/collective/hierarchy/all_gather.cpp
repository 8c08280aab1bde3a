#include <algorithm>

#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/hierarchy/host_messages.hpp"
#include "troupe/collective/hierarchy/large_call.hpp"
#include "troupe/collective/hierarchy/whole_inputs.hpp"

namespace troupe::hierarchy {
namespace {

/// The parts of a host's members one after the other, to their places in the output.
void place_parts(const site& at, int host, const std::vector<std::byte>& parts) {
  const auto* from = parts.data();
  for (int member : at.where.members_on(host)) {
    auto place = at.far.output(part_of(at.what(), member));
    copy_bytes(from, place.data(), place.size(), store_kind::cached);
    from += place.size();
  }
}

algorithm all_gather_small(site& at) {
  auto own = at.what().input.bytes();
  at.near.come_with([&](int) { return own; });
  co_await until([&] { return at.near.everyone_is_here(); });
  host_messages said;
  for (int host = 0; host < at.where.num_hosts(); ++host) {
    std::size_t size = 0;
    for (int member : at.where.members_on(host)) size += at.bytes_of(part_of(at.what(), member).count);
    said.of_host.emplace_back(size);
  }
  auto& here = said.of_host[static_cast<std::size_t>(at.host())];
  auto* to = here.data();
  for (int member : at.where.members_on(at.host())) {
    auto size = at.bytes_of(part_of(at.what(), member).count);
    const auto* part = member == at.member() ? own.data() : at.near.left_by(at.where.place_of(member), size);
    copy_bytes(part, std::exchange(to, to + size), size, store_kind::cached);
  }
  said.own = here;
  auto exchange = exchange_messages(at, said);
  co_await finished(exchange);
  for (int host = 0; host < at.where.num_hosts(); ++host)
    place_parts(at, host, said.of_host[static_cast<std::size_t>(host)]);
}

/// The own part, to the other hosts, and each stretch that has gone there to the neighbours' outputs.
algorithm show_own(flow& in) {
  auto& at = in.at;
  auto own = at.what().input.bytes();
  auto first = part_of(at.what(), at.member()).first;
  const auto& taken = in.cut.of(at.member());
  auto bytes_at = [&](const share& elements) {
    return own.subspan(at.bytes_of(elements.first - first), at.bytes_of(elements.count));
  };
  std::vector<std::vector<std::shared_ptr<const network::transfer>>> sent;
  for (std::uint32_t i = 0; i < taken.size(); ++i)
    sent.push_back(send_taken(in, taken[i], i, bytes_at(taken[i].elements)));
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    for (const auto& each : sent[i]) co_await until([&] { return each->is_done(); });
    auto bytes = bytes_at(taken[i].elements);
    for (auto* place : in.places_of(taken[i].elements))
      if (place != bytes.data()) copy_bytes(bytes.data(), place, bytes.size(), store_kind::cached);
  }
}

// Each member has its part, and everybody takes the others' from one of each other host.
algorithm all_gather_large(site& at) {
  at.near.come_with_tensors(direct::exposed::output);
  co_await until([&] { return at.near.everyone_is_here(); });
  at.near.reach();
  flow in{
      .at = at, .cut = divided(at, own_parts(at)), .outputs = all_places(at), .results_to = all_hosts(at)};
  std::vector<algorithm> parts;
  parts.push_back(take_results(in));
  parts.push_back(show_own(in));
  parts.push_back(every_host_has_come(at));
  auto all = all_finished(at, std::move(parts));
  co_await finished(all);
  at.near.take_output();
}

}  // namespace

algorithm all_gather(site at) {
  const auto& parts = at.what().parts;
  bool fits = fits_beside_notes(at, *std::ranges::max_element(parts));
  auto part = fits && is_small(at, at.what().signature.count) ? all_gather_small(at) : all_gather_large(at);
  co_await finished(part);
}

}  // namespace troupe::hierarchy
