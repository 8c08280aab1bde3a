#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/net/exchange/exchange_peer.hpp"
#include "troupe/collective/net/exchange/network_fabric.hpp"
#include "troupe/collective/net/exchange/recent_calls.hpp"

namespace troupe::collective {

/// The transfers of a group's calls: it matches received messages with posted receives, and keeps those that
/// come before. Called with the fabric's lock.
///
/// Flow control: every 64th message of calls to a member is sent by rendezvous, which ends only when it has
/// received it. So the number of messages that wait unreceived at a member is bounded.
class call_transfers {
 public:
  /// All of them outlive it. peers: by member.
  call_transfers(network_fabric& over, message_owner& owner, const group_description& group,
                 const recent_calls& calls, std::vector<exchange_peer>& peers)
      : fabric_(over), owner_(owner), group_(group), calls_(calls), peers_(peers) {}

  /// Does nothing after stop(), or if the connection is lost.
  std::shared_ptr<ucx_message> send(int to, const net::message_header& header,
                                    std::span<const std::byte> bytes);
  /// expected: of the message. Throws collective_error if another one has come.
  std::shared_ptr<ucx_message> receive(int from, const net::message_header& expected,
                                       std::span<std::byte> place);
  /// A message has come: as ucx_connections::listener::on_message(). Throws as receive().
  bool accept(const net::message_header& header, std::span<const std::byte> body, void* descriptor);
  void on_done(ucx_message& done);
  /// No message is delivered or sent any more. One that is to be fetched is released when its sender says
  /// that it has ended the group too: it answers then.
  void stop();
  bool is_stopped() const { return is_stopped_; }
  /// Releases the messages of a member that wait to be fetched.
  void release(int member);

 private:
  exchange_peer& peer(int member) { return peers_[static_cast<std::size_t>(member)]; }
  std::shared_ptr<ucx_message> made(int member, const net::message_header& header);
  /// `body`: the bytes; or, with a descriptor, their number: they are fetched.
  void deliver(const std::shared_ptr<ucx_message>& into, const net::message_header& header,
               std::span<const std::byte> body, void* descriptor);

  network_fabric& fabric_;
  message_owner& owner_;
  const group_description& group_;
  const recent_calls& calls_;
  std::vector<exchange_peer>& peers_;
  bool is_stopped_ = false;
};

}  // namespace troupe::collective
