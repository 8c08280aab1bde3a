#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/collective/net/exchange/ucx_exchange.hpp"

namespace troupe::collective {

struct ucx_group_resources;

/// Forms a group over the network: connects its members, and waits until all have come. Each sends the others
/// a hello, and tells them when it has a hello of each, which is all that a group costs when its processes
/// know each other. So the loss of a member after this has returned somewhere fails the calls of the group on
/// all others, and not its formation.
///
/// A lost connection to a member whose hello has not come is made again. Its process may have ended its
/// connections before (network_fabric) and have another address when it comes. Once the member has come,
/// three failed attempts end the formation on all members; its hello or its entry in the store says that it
/// has come. A lost connection to a member whose hello has come is not made again, since that member has
/// mostly ended. This member puts an entry into the store for the case that the other one lives and waits.
class network_formation {
 public:
  /// Both outlive it.
  network_formation(rendezvous& point, ucx_group_resources& resources);

  const std::shared_ptr<network_fabric>& fabric() const { return fabric_; }
  /// The connections to the other members, by member. What a process tells the others is read once, and again
  /// when its connection is lost.
  std::vector<int> connect();
  /// Waits until all other members have a hello of each, or are lost since. Throws what rendezvous throws,
  /// collective_error (transport) that names the members that cannot reach each other, and the error of a
  /// member that has given up.
  void wait_for_all(ucx_exchange& exchange);

 private:
  using clock = std::chrono::steady_clock;
  /// Of this formation to connect to a member with the same address.
  struct attempts {
    std::string address;
    int count = 0;
    clock::time_point next;
  };

  network_fabric::process process_of(int member) const;
  std::vector<int> missing(const std::vector<peer_status>& statuses) const;
  std::vector<int> not_ready(const std::vector<peer_status>& statuses) const;
  void look_at_store(ucx_exchange& exchange, const std::vector<peer_status>& statuses, bool is_late);
  void reconnect(ucx_exchange& exchange);
  void fail_if_unreachable(const ucx_exchange& exchange, int member, const attempts& made);
  void tell_lost(const std::vector<peer_status>& statuses);
  void tell_missing(const std::vector<peer_status>& statuses);
  void check(int member);
  void require_own_connections();
  void throw_missing(const std::vector<peer_status>& statuses);
  std::string rank_text(int member) const { return "rank " + to_string(point_.rank_of(member)); }
  std::string text_of_connection(int from, int to, const std::string& lost_cause) const;
  std::string text_of_missing(const std::vector<peer_status>& statuses,
                              const std::vector<int>& members) const;

  rendezvous& point_;
  known_processes& processes_;
  std::shared_ptr<network_fabric> fabric_;
  const std::uint32_t num_ends_;  ///< of this process's connections, when this began
  const std::string interface_;
  const std::string address_name_;
  std::map<int, attempts> attempts_;               ///< by member
  std::vector<std::string> hosts_;                 ///< of the members, for errors
  std::set<int> told_lost_;                        ///< members for which tell_lost() has put a word
  bool is_ready_ = false;                          ///< a hello of each has come
  bool has_told_ = false, has_told_late_ = false;  ///< tell_missing() was called, and after half of the time
};

}  // namespace troupe::collective
