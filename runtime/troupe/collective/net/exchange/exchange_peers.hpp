#pragma once
#include <map>
#include <string>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/net/exchange/ended_groups.hpp"
#include "troupe/collective/net/exchange/exchange_peer.hpp"
#include "troupe/collective/net/exchange/network_fabric.hpp"
#include "troupe/collective/net/exchange/recent_calls.hpp"

namespace troupe::collective {

/// The other members of a group in an exchange, and what their messages and connections say about them.
/// Called with the fabric's lock.
class exchange_peers {
 public:
  /// All of them outlive it.
  exchange_peers(network_fabric& over, const group_description& group, const recent_calls& calls)
      : fabric_(over), group_(group), calls_(calls), peers_(static_cast<std::size_t>(group.size())) {}

  exchange_peer& operator[](int member) { return peers_[static_cast<std::size_t>(member)]; }
  const exchange_peer& operator[](int member) const { return peers_[static_cast<std::size_t>(member)]; }
  /// By member.
  std::vector<exchange_peer>& all() { return peers_; }

  /// A message of another member says which collective call it made last. Throws collective_error (mismatch)
  /// if this member has made another one.
  void record_call(const net::message_header& header);
  /// Throws the same if a message that has come before belongs to another call than this new one.
  void compare_call(std::uint64_t sequence, const call_signature& signature) const;
  void record_hello(const net::message_header& header);
  /// Another connection to a member, which has been said hello to by none yet.
  void set_connection(int member, int connection);
  /// Whether a member that was not lost is now.
  bool on_lost(int connection, const std::string& cause);
  /// Without a hello over their present connection, which is lost, or older than the hello that has come.
  std::vector<int> to_reconnect() const;
  /// Members that have not ended the group and can be reached, with their messages that wait to be fetched,
  /// which are forgotten here.
  std::map<int, ended_groups::member> take_present();

 private:
  void update_connected(exchange_peer& peer) const;

  network_fabric& fabric_;
  const group_description& group_;
  const recent_calls& calls_;
  std::vector<exchange_peer> peers_;
};

}  // namespace troupe::collective
