#include "troupe/collective/shm/process_backend.hpp"

#include <stdexcept>

namespace troupe {
namespace {

// A socket holds some hundred messages, and nobody may have received them for a while.
constexpr int locations_between_exchanges = 16;

}  // namespace

process_memory::process_memory(shared_heap& heap, std::vector<std::shared_ptr<peer_process>> peers)
    : heap_(heap), peers_(std::move(peers)), mapped_(peers_.size()) {}

shm::buffer_location process_memory::locate(std::span<const std::byte> elements) {
  if (++num_located_ % locations_between_exchanges == 0) exchange_released();
  auto found = heap_.locate(elements);
  if (!found) return {};
  for (const auto& peer : peers_)
    if (peer) peer->send_segment(*found->segment);
  return {found->segment->id, found->offset};
}

std::byte* process_memory::resolve(int member, const shm::buffer_location& location) {
  auto& known = mapped_[static_cast<std::size_t>(member)];
  auto at = known.find(location.segment);
  if (at == known.end()) {
    auto segment = peers_[static_cast<std::size_t>(member)]->find_segment(location.segment);
    if (!segment)
      throw std::runtime_error("segment " + std::to_string(location.segment) + " of member " +
                               std::to_string(member) + " was named but not sent");
    at = known.emplace(location.segment, std::move(segment)).first;
  }
  if (location.offset >= at->second->size_bytes())
    throw std::runtime_error("member " + std::to_string(member) + " named a place outside its segment");
  return at->second->first() + location.offset;
}

// The others cannot access the fresh pages, so there is no access to wait for.
void process_memory::revoke(std::span<const std::byte> elements, const shm::control_block&) {
  heap_.revoke(elements);
}

/// Tells the peers which segments were freed here, and unmaps those that were freed there. Only while no
/// algorithm uses an address from resolve(): the thread that calls locate() is the only one of the group.
void process_memory::exchange_released() {
  auto released = heap_.take_released();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i]) continue;
    peers_[i]->release_segments(released);
    peers_[i]->receive_segments();
    // The last reference is in this map: the owner has freed the segment.
    std::erase_if(mapped_[i], [](const auto& each) { return each.second.use_count() == 1; });
  }
}

process_backend::process_backend(group_description group, ucx_group_resources& resources,
                                 std::vector<std::shared_ptr<peer_process>> peers,
                                 std::shared_ptr<mapping> block_memory)
    : shm_backend(group, shm::control_block(block_memory->first(), group.size(), group.member),
                  std::make_unique<process_memory>(resources.heap, peers)),
      peers_(std::move(peers)),
      seen_ended_(peers_.size()),
      block_memory_(std::move(block_memory)),
      watch_(resources.connector, [this] { wake(); }) {}

// A process may end normally after its part of the last call. What it wrote before is in memory, but this
// member may not have read it yet. So after an end was seen, calls are advanced once more before it counts as
// a loss.
void process_backend::check_members() {
  shm_backend::check_members();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i] || !peers_[i]->has_ended()) continue;
    if (seen_ended_[i]) {
      throw_if_waiting_for(static_cast<int>(i));
    } else {
      seen_ended_[i] = true;
      wake();
    }
  }
}

}  // namespace troupe
