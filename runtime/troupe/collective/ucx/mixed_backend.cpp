#include "troupe/collective/ucx/mixed_backend.hpp"

#include <algorithm>

#include "troupe/collective/direct/algorithms.hpp"
#include "troupe/collective/hierarchy/algorithms.hpp"
#include "troupe/collective/ucx/host_memory.hpp"

namespace troupe {
namespace {

/// Of a member that is alone on its host: all is within its own reach.
class lone_memory final : public direct::member_memory {
 public:
  direct::buffer_place place_of(std::span<const std::byte> elements) override {
    return {0, reinterpret_cast<std::uint64_t>(elements.data())};
  }
  std::byte* find(int, const direct::buffer_place& place) override {
    return reinterpret_cast<std::byte*>(place.offset);
  }
  tensor allocate(shape extents, dtype type) override { return tensor::zeros(std::move(extents), type); }
  tensor empty(shape extents, dtype type) override { return tensor::empty(std::move(extents), type); }
  void withdraw(std::span<const std::byte>, const direct::board&) override {}
};

std::unique_ptr<direct::member_memory> memory_of(const neighbourhood& met, shared_heap& heap) {
  if (met.peers.size() == 1) return std::make_unique<lone_memory>();
  return std::make_unique<host_memory>(heap, met.peers);
}

/// Those that gain: in the others every byte has one receiver anyway.
bool goes_by_hierarchy(collective_kind kind) {
  switch (kind) {
    case collective_kind::all_reduce:
    case collective_kind::reduce_scatter:
    case collective_kind::all_gather:
    case collective_kind::broadcast:
    case collective_kind::reduce:
    case collective_kind::barrier:
      return true;
    default:
      return false;
  }
}

}  // namespace

mixed_backend::mixed_backend(rendezvous& at, ucx_group_resources& resources, hierarchy::placement where,
                             neighbourhood met)
    : network_backend(at, resources.network),
      where_(std::move(where)),
      met_(std::move(met)),
      board_(met_.board_memory->first(), met_.members.size(), met_.members.member),
      memory_(memory_of(met_, resources.heap)),
      bells_(board_, [this] { wake(); }) {}

std::string_view mixed_backend::algorithm_of(const collective_operation& what) const {
  if (goes_by_hierarchy(what.signature.kind)) return "hierarchy";
  return what.peer >= 0 && is_neighbour(what.peer) ? "memory" : "network";
}

void mixed_backend::announce_sleep() {
  board_.announce_sleep();
  network_backend::announce_sleep();
}

void mixed_backend::cancel_sleep() {
  board_.cancel_sleep();
  network_backend::cancel_sleep();
}

void mixed_backend::abort(const collective_error& why) noexcept {
  network_backend::abort(why);
  memory_->withdraw_all(board_);
}

algorithm mixed_backend::chosen(const collective_operation& what, std::uint64_t sequence) {
  switch (what.signature.kind) {
    case collective_kind::all_reduce:
      return hierarchy::all_reduce(meet(what, sequence));
    case collective_kind::reduce_scatter:
      return hierarchy::reduce_scatter(meet(what, sequence));
    case collective_kind::all_gather:
      return hierarchy::all_gather(meet(what, sequence));
    case collective_kind::broadcast:
      return hierarchy::broadcast(meet(what, sequence));
    case collective_kind::reduce:
      return hierarchy::reduce(meet(what, sequence));
    case collective_kind::barrier:
      return hierarchy::barrier(meet(what, sequence));
    default:
      bool is_near = what.peer >= 0 && is_neighbour(what.peer);
      return is_near ? between_neighbours(what, sequence) : network_backend::chosen(what, sequence);
  }
}

hierarchy::site mixed_backend::meet(const collective_operation& what, std::uint64_t sequence) {
  direct::presence here(running_here_, board_, what, sequence);
  return {.near = direct::meeting(board_, *memory_, met_.members, std::move(here), what, sequence),
          .far = converse(what, sequence),
          .where = where_};
}

/// For those of one host the peer has another number.
algorithm mixed_backend::between_neighbours(const collective_operation& what, std::uint64_t sequence) {
  auto there = what;
  there.peer = where_.place_of(what.peer);
  direct::presence here(running_here_, board_, there, sequence);
  auto part = there.signature.kind == collective_kind::send
                  ? direct::send(board_, *memory_, std::move(here), there, sequence)
                  : direct::receive(board_, *memory_, std::move(here), met_.members, there, sequence);
  co_await finished(part);
}

bool mixed_backend::has_come(int place, std::uint64_t sequence) const {
  return board_.note(board_.member(), place, sequence).sequence.load(std::memory_order_acquire) >= sequence;
}

/// Messages between hosts begin when the neighbours are there. Until then those on other hosts are waited for
/// as well, unless they were heard of: nobody leaves a call to which not all have come.
bool mixed_backend::awaits(int member) const {
  if (network_backend::awaits(member)) return true;
  auto place = where_.place_of(member);
  return std::ranges::any_of(running_here_, [&](const direct::running_call& each) {
    if (each.what->peer >= 0) return is_neighbour(member) && each.what->peer == place;
    if (is_neighbour(member)) return !has_come(place, each.sequence) || !board_.has_passed(place);
    bool is_meeting = false;
    for (int i = 0; i < board_.num_members(); ++i)
      is_meeting = is_meeting || (i != board_.member() && !has_come(i, each.sequence));
    return is_meeting && heard(member).sequence < each.sequence;
  });
}

}  // namespace troupe
