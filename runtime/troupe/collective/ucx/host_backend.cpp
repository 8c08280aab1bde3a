#include "troupe/collective/ucx/host_backend.hpp"

#include "troupe/collective/ucx/host_memory.hpp"

namespace troupe {

host_backend::host_backend(group_description group, ucx_group_resources& resources,
                           std::vector<std::shared_ptr<host_peer>> peers,
                           std::shared_ptr<mapping> board_memory)
    : direct_backend(group, direct::board(board_memory->first(), group.size(), group.member),
                     std::make_unique<host_memory>(resources.heap, peers)),
      peers_(std::move(peers)),
      seen_ended_(peers_.size()),
      board_memory_(std::move(board_memory)),
      watch_(resources.exchange, [this] { wake(); }) {}

// A member may end when it has done its part of the last call. What it did before it ended is in memory, but
// perhaps was not looked at yet: so calls are moved on once more between seeing the end and calling it a
// loss.
void host_backend::check_members() {
  direct_backend::check_members();
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i] || !peers_[i]->has_ended()) continue;
    if (seen_ended_[i]) {
      throw_if_needed(static_cast<int>(i));
    } else {
      seen_ended_[i] = true;
      wake();
    }
  }
}

}  // namespace troupe
