#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/collective/group/ucx_group.hpp"

namespace troupe {

/// The members of a new group that are on this member's host (its local members), and their control block.
struct host_members {
  group_description members;                         ///< their ranks; `member`: this one's local index
  std::vector<std::shared_ptr<peer_process>> peers;  ///< by local index, null for this one
  std::shared_ptr<mapping> block_memory;             ///< of the control block, the same for all of them
};

/// Connects the members of each host with each other; all members of the group call this together. infos: of
/// all members. Throws what rendezvous throws, and collective_error (transport) on all members if members of
/// one host cannot share memory.
host_members connect_host_members(rendezvous& at, const std::vector<member_info>& infos,
                                  ucx_group_resources& resources);

}  // namespace troupe
