#include "troupe/collective/hierarchy/whole_inputs.hpp"

#include "troupe/collective/hierarchy/host_messages.hpp"

namespace troupe::hierarchy {
namespace {

/// The neighbours' inputs, by place: left with the notes, or in reach.
std::vector<const std::byte*> inputs_of_neighbours(site& at, bool are_left) {
  auto own = at.what().input.bytes();
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < at.num_neighbours(); ++i)
    inputs.push_back(!are_left         ? at.near.input_of(i)
                     : i == at.place() ? own.data()
                                       : at.near.left_by(i, own.size()));
  return inputs;
}

}  // namespace

bool is_small(const site& at, std::int64_t count) {
  return at.bytes_of(count) <= std::max(at.far.sizes().whole_inputs, direct::board::small_bytes);
}

// The own part of the tree is reduced before the others' nodes come, and nobody looks at a neighbour's input
// after that: so it may be the output.
algorithm reduce_whole_inputs(site& at, share wanted, std::byte* result, int hearer) {
  auto own = at.what().input.bytes();
  auto count = at.what().signature.count;
  bool are_left = fits_beside_notes(at, count);
  if (are_left)
    at.near.come_with([&](int) { return own; });
  else
    at.near.come_with_tensors(direct::exposed::input);
  co_await until([&] { return at.near.everyone_is_here(); });
  if (!are_left) at.near.reach();
  std::vector<std::vector<std::byte>> inputs;
  for (const auto* each : inputs_of_neighbours(at, are_left)) inputs.emplace_back(each, each + own.size());
  if (!are_left) at.near.pass();
  std::vector<const std::byte*> places;
  for (const auto& each : inputs) places.push_back(each.data());
  std::vector<std::byte> nodes(bytes_of_nodes(at, at.host(), count));
  reduce_own_nodes(at, places, count, nodes.data());

  host_messages said{.own = nodes, .hearer = hearer};
  for (int host = 0; host < at.where.num_hosts(); ++host)
    said.of_host.emplace_back(host == at.host() ? 0 : bytes_of_nodes(at, host, count));
  auto exchange = exchange_messages(at, said);
  co_await finished(exchange);
  if (!are_left) co_await until([&] { return at.near.everyone_passed(); });
  if (hearer >= 0 && hearer != at.member()) co_return;

  std::vector<const std::byte*> heard;
  for (const auto& each : said.of_host) heard.push_back(each.data());
  std::vector<std::byte> all(own.size());
  auto* to = all.data();
  reduce_all(at, places, heard, count, {&to, 1});
  copy_bytes(all.data() + at.bytes_of(wanted.first), result, at.bytes_of(wanted.count), store_kind::cached);
}

}  // namespace troupe::hierarchy
