#pragma once
#include <memory>
#include <vector>

#include "troupe/collective/direct/direct_backend.hpp"
#include "troupe/collective/ucx/peer_exchange.hpp"
#include "troupe/collective/ucx/ucx_group_resources.hpp"

namespace troupe {

/// Members that are processes of one host. A member whose process ends is noticed at once by all that need
/// it.
class host_backend : public direct::direct_backend {
 public:
  /// peers: by member, null for this one. board_memory: the same for all members.
  host_backend(group_description group, ucx_group_resources& resources,
               std::vector<std::shared_ptr<host_peer>> peers, std::shared_ptr<mapping> board_memory);

  std::string_view name() const override { return "ucx"; }
  void check_members() override;

 private:
  std::vector<std::shared_ptr<host_peer>> peers_;
  std::vector<bool> seen_ended_;
  std::shared_ptr<mapping> board_memory_;
  peer_exchange::watch watch_;
};

}  // namespace troupe
