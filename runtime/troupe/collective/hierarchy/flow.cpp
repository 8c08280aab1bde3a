#include "troupe/collective/hierarchy/flow.hpp"

#include <algorithm>
#include <deque>

namespace troupe::hierarchy {
namespace {

using network::carried;
using network::transfer;

std::vector<const std::byte*> inputs_at(site& at, const share& elements) {
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < at.num_neighbours(); ++i)
    inputs.push_back(at.near.input_of(i) + at.bytes_of(elements.first));
  return inputs;
}

std::size_t window(const site& at) {
  return static_cast<std::size_t>(std::max(1, at.far.sizes().blocks_ahead));
}

int partner(const stretch& of, int host) { return of.partners[static_cast<std::size_t>(host)]; }

struct task {
  int taker;
  std::uint32_t number;  ///< of the stretch
  const stretch* what;
};

/// The stretches of takers on other hosts in which this member is the partner here: round by round, so that
/// all takers get their first ones first.
std::vector<task> tasks_of(const flow& in) {
  std::vector<task> tasks;
  for (std::uint32_t number = 0; number < in.cut.most(); ++number)
    for (int distance = 1; distance < in.at.where.num_members(); ++distance) {
      auto taker = in.at.far.after(distance);
      const auto& all = in.cut.of(taker);
      if (in.at.where.host_of(taker) == in.at.host() || number >= all.size()) continue;
      if (partner(all[number], in.at.host()) == in.at.member())
        tasks.push_back({taker, number, &all[number]});
    }
  return tasks;
}

/// A stretch that this member takes, on its way from the other hosts.
struct awaited_stretch {
  std::vector<std::vector<std::byte>> nodes;  ///< by host
  std::vector<std::shared_ptr<const transfer>> coming;

  bool is_there() {
    while (!coming.empty() && coming.back()->is_done()) coming.pop_back();
    return coming.empty();
  }
};

void await_stretch(site& at, const stretch& what, std::uint32_t number, awaited_stretch& into) {
  into.nodes.resize(static_cast<std::size_t>(at.where.num_hosts()));
  for (int host = 0; host < at.where.num_hosts(); ++host) {
    if (host == at.host()) continue;
    auto& nodes = into.nodes[static_cast<std::size_t>(host)];
    nodes.resize(bytes_of_nodes(at, host, what.elements.count));
    into.coming.push_back(at.far.receive(partner(what, host), carried::inputs, number, nodes));
  }
}

/// What is in the first output, to the others.
void show_neighbours(const flow& in, const share& elements) {
  auto places = in.places_of(elements);
  for (std::size_t i = 1; i < places.size(); ++i)
    copy_bytes(places[0], places[i], in.at.bytes_of(elements.count), store_kind::cached);
}

}  // namespace

std::vector<std::byte*> flow::places_of(const share& elements) const {
  std::vector<std::byte*> places;
  for (int each : outputs) places.push_back(at.near.output_of(each) + at.bytes_of(elements.first));
  return places;
}

// A member that is alone on its host sends what it has; nodes of several are reduced into a few buffers in
// turn.
algorithm send_nodes(flow& in) {
  auto& at = in.at;
  struct buffer {
    std::vector<std::byte> nodes;
    std::shared_ptr<const transfer> sent;
  };
  std::vector<buffer> buffers(window(at) * static_cast<std::size_t>(at.where.num_hosts() - 1));
  std::size_t turn = 0;
  for (const auto& each : tasks_of(in)) {
    const auto& elements = each.what->elements;
    auto& next = buffers[turn++ % buffers.size()];
    co_await until([&] { return !next.sent || next.sent->is_done(); });
    next.nodes.resize(bytes_of_nodes(at, at.host(), elements.count));
    reduce_own_nodes(at, inputs_at(at, elements), elements.count, next.nodes.data());
    next.sent = at.far.send(each.taker, carried::inputs, each.number, next.nodes);
  }
  for (auto& each : buffers) co_await until([&] { return !each.sent || each.sent->is_done(); });
}

// A piece is copied whenever a message has gone: so copying does not keep messages waiting.
algorithm send_input_of(flow& in, int place) {
  auto& at = in.at;
  std::vector<std::shared_ptr<const transfer>> sent;
  for (const auto& each : tasks_of(in)) {
    const auto& elements = each.what->elements;
    const auto* input = at.near.input_of(place) + at.bytes_of(elements.first);
    sent.push_back(
        at.far.send(each.taker, carried::inputs, each.number, {input, at.bytes_of(elements.count)}));
  }
  if (place == at.place()) co_return;
  auto num_pieces = std::max<int>(1, static_cast<int>(sent.size()));
  for (int i = 0; i < num_pieces; ++i) {
    if (!sent.empty()) co_await until([&] { return sent[static_cast<std::size_t>(i)]->is_done(); });
    auto piece = share_of(at.what().signature.count, at.far.element_bytes(), num_pieces, i);
    auto first = at.bytes_of(piece.first);
    copy_bytes(at.near.input_of(place) + first, at.near.output_of(at.place()) + first,
               at.bytes_of(piece.count), store_kind::cached);
  }
}

// Nobody else looks at these elements of the neighbours' inputs: so they may be the outputs.
algorithm reduce_taken(flow& in, std::byte* result) {
  auto& at = in.at;
  const auto& taken = in.cut.of(at.member());
  std::vector<awaited_stretch> awaited(std::min(taken.size(), window(at)));
  for (std::uint32_t i = 0; i < awaited.size(); ++i) await_stretch(at, taken[i], i, awaited[i]);
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    auto& next = awaited[i % awaited.size()];
    co_await until([&] { return next.is_there(); });
    const auto& elements = taken[i].elements;
    std::vector<const std::byte*> nodes;
    for (const auto& each : next.nodes) nodes.push_back(each.data());
    auto places = result ? std::vector{result + at.bytes_of(elements.first - taken[0].elements.first)}
                         : in.places_of(elements);
    reduce_all(at, inputs_at(at, elements), nodes, elements.count, places);
    send_taken(in, taken[i], i, {places[0], at.bytes_of(elements.count)});
    auto further = i + static_cast<std::uint32_t>(awaited.size());
    if (further < taken.size()) await_stretch(at, taken[further], further, next);
  }
}

std::vector<std::shared_ptr<const transfer>> send_taken(flow& in, const stretch& what, std::uint32_t number,
                                                        std::span<const std::byte> taken) {
  std::vector<std::shared_ptr<const transfer>> sent;
  for (int host : in.results_to)
    if (host != in.at.host())
      sent.push_back(in.at.far.send(partner(what, host), carried::results, number, taken));
  return sent;
}

// A taker's result comes only after it had this host's nodes, for which the inputs were read: so they may be
// the outputs.
algorithm take_results(flow& in) {
  auto& at = in.at;
  if (in.outputs.empty()) co_return;
  std::deque<std::pair<const stretch*, std::shared_ptr<const transfer>>> coming;
  for (const auto& each : tasks_of(in)) {
    const auto& elements = each.what->elements;
    std::span<std::byte> place(in.places_of(elements)[0], at.bytes_of(elements.count));
    coming.emplace_back(each.what, at.far.receive(each.taker, carried::results, each.number, place));
  }
  for (; !coming.empty(); coming.pop_front()) {
    co_await until([&] { return coming.front().second->is_done(); });
    show_neighbours(in, coming.front().first->elements);
  }
}

algorithm pass_on(flow& in, int host) {
  auto& at = in.at;
  const auto& taken = in.cut.of(at.member());
  std::vector<std::shared_ptr<const transfer>> coming;
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    std::span<std::byte> place(in.places_of(taken[i].elements)[0], at.bytes_of(taken[i].elements.count));
    coming.push_back(at.far.receive(partner(taken[i], host), carried::inputs, i, place));
  }
  for (std::uint32_t i = 0; i < taken.size(); ++i) {
    co_await until([&] { return coming[i]->is_done(); });
    send_taken(in, taken[i], i, {in.places_of(taken[i].elements)[0], at.bytes_of(taken[i].elements.count)});
    show_neighbours(in, taken[i].elements);
  }
}

algorithm all_finished(site& at, std::vector<algorithm> parts) {
  co_await until([&] {
    bool are_finished = true;
    for (auto& each : parts) are_finished = each.advance() && are_finished;
    return are_finished;
  });
  co_await until([&] { return at.far.all_done(); });
  at.near.pass();
  co_await until([&] { return at.near.everyone_passed(); });
}

}  // namespace troupe::hierarchy
