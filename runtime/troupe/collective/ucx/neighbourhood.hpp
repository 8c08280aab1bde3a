#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/ucx/member_card.hpp"
#include "troupe/collective/ucx/rendezvous.hpp"
#include "troupe/collective/ucx/ucx_group_resources.hpp"

namespace troupe {

/// The members of a new group that are on this one's host, and the memory in which they meet.
struct neighbourhood {
  group_description members;                      ///< their ranks; `member`: this one's number among them
  std::vector<std::shared_ptr<host_peer>> peers;  ///< null for this one
  std::shared_ptr<mapping> board_memory;          ///< the same for all of them
};

/// cards: of all members, who call this together. Throws what rendezvous throws, and collective_error
/// (transport) on all members where some of one host cannot share memory.
neighbourhood meet_neighbours(rendezvous& at, const std::vector<member_card>& cards,
                              ucx_group_resources& resources);

}  // namespace troupe
