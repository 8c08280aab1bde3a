#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/collective/net/ucx_exchange.hpp"

namespace troupe {

struct ucx_group_resources;

/// Forms a group over the network: connects its members, and waits until all have come. Each sends the others
/// a hello, and tells them when it has a hello of each, which is all that a group costs when its processes
/// know each other. So the loss of a member after this has returned somewhere fails the calls of the group on
/// all others, and not its formation.
///
/// A member whose process has ended its connections before (network_fabric) has another address, which the
/// others notice by the loss of the old connection or by its hello, and say hello again.
class network_formation {
 public:
  /// Both outlive it.
  network_formation(rendezvous& at, ucx_group_resources& resources);

  const std::shared_ptr<network_fabric>& fabric() const { return fabric_; }
  /// The connections to the other members, by member. What a process tells the others is read once, and again
  /// when its connection is lost.
  std::vector<int> connect();
  /// Waits until all other members have a hello of each, or are lost since. Throws what rendezvous throws,
  /// collective_error (transport) that names the members that cannot reach each other, and the error of a
  /// member that has given up.
  void wait_for_all(ucx_exchange& exchange);

 private:
  network_fabric::process process_of(int member) const;
  void look_at_store(ucx_exchange& exchange, const std::vector<int>& missing, bool is_late);
  template <class Condition>
  std::vector<int> members_where(const ucx_exchange& exchange, Condition holds) const;
  std::vector<int> not_ready(const ucx_exchange& exchange) const;
  std::string text_of_missing(const ucx_exchange& exchange, int member) const;
  void tell_missing(const ucx_exchange& exchange, const std::vector<int>& missing);
  void reconnect(ucx_exchange& exchange);
  void require_own_connections();
  std::vector<int> missing_members(const ucx_exchange& exchange) const;
  void throw_missing(const ucx_exchange& exchange, const std::vector<int>& missing);

  rendezvous& at_;
  known_processes& processes_;
  std::shared_ptr<network_fabric> fabric_;
  const std::uint32_t num_ends_;  ///< of this process's connections, when this began
  const std::string interface_;
  const std::string address_name_;
};

}  // namespace troupe
