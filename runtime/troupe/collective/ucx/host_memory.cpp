#include "troupe/collective/ucx/host_memory.hpp"

#include <stdexcept>

namespace troupe {
namespace {

// How often sockets are emptied that nobody may have looked at: they hold some hundred messages.
constexpr int places_between_tidying = 16;

}  // namespace

host_memory::host_memory(shared_heap& heap, std::vector<std::shared_ptr<host_peer>> peers)
    : heap_(heap), peers_(std::move(peers)), found_(peers_.size()) {}

direct::buffer_place host_memory::place_of(std::span<const std::byte> elements) {
  if (++num_places_ % places_between_tidying == 0) tidy();
  auto place = heap_.find(elements);
  if (!place) return {};
  for (const auto& peer : peers_)
    if (peer) peer->give(*place->segment);
  return {place->segment->id, place->offset};
}

std::byte* host_memory::find(int member, const direct::buffer_place& place) {
  auto& known = found_[static_cast<std::size_t>(member)];
  auto at = known.find(place.segment);
  if (at == known.end()) {
    auto segment = peers_[static_cast<std::size_t>(member)]->find(place.segment);
    if (!segment)
      throw std::runtime_error("segment " + std::to_string(place.segment) + " of member " +
                               std::to_string(member) + " was named but not handed over");
    at = known.emplace(place.segment, std::move(segment)).first;
  }
  if (place.offset >= at->second->size_bytes())
    throw std::runtime_error("member " + std::to_string(member) + " named a place outside its segment");
  return at->second->first() + place.offset;
}

// Nobody else can reach the fresh pages, so there is nobody to wait for.
void host_memory::withdraw(std::span<const std::byte> elements, const direct::board&) {
  heap_.withdraw(elements);
}

/// Between calls' uses of what find() returned: this thread is the only one of the group.
void host_memory::tidy() {
  auto ended = heap_.take_ended();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i]) continue;
    peers_[i]->forget(ended);
    peers_[i]->take_given();
    // Whoever holds the last reference is this map: the owner has no such segment any more.
    std::erase_if(found_[i], [](const auto& each) { return each.second.use_count() == 1; });
  }
}

}  // namespace troupe
