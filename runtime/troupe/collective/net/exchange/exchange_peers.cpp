#include "troupe/collective/net/exchange/exchange_peers.hpp"

#include <chrono>

namespace troupe::collective {

void exchange_peers::record_call(const net::message_header& header) {
  if (header.channel != net::channel::collectives) return;
  auto& status = (*this)[header.from].status;
  if (header.sequence >= status.sequence) {
    status.sequence = header.sequence;
    status.signature = header.signature;
  }
  if (header.kind != net::message_kind::elements && header.kind != net::message_kind::call_notice) return;
  calls_.require_same(header);
}

void exchange_peers::compare_call(std::uint64_t sequence, const call_signature& signature) const {
  for (int i = 0; i < group_.size(); ++i) {
    const auto& peer = (*this)[i];
    net::message_header newest;
    newest.from = i;
    newest.sequence = peer.status.sequence;
    newest.signature = peer.status.signature;
    if (newest.sequence == sequence) calls_.require(signature, newest);
    for (const auto& [key, early] : peer.early())
      if (key.channel == net::channel::collectives && key.sequence == sequence)
        calls_.require(signature, early.header);
  }
}

void exchange_peers::record_hello(const net::message_header& header) {
  auto& from = (*this)[header.from];
  from.greeted_by = header.num_ends;
  from.status.has_come = true;
  update_connected(from);
}

/// A hello does not count that its sender has sent before it ended its connections. Nor does one that was
/// sent over newer connections, or while the connection to the sender is lost, until this member has
/// reconnected.
void exchange_peers::update_connected(exchange_peer& peer) const {
  peer.status.is_connected =
      peer.status.lost_cause.empty() && peer.greeted_by == fabric_.num_ends_of(peer.connection);
}

void exchange_peers::set_connection(int member, int connection) {
  auto& to = (*this)[member];
  to.connection = connection;
  to.status.lost_cause.clear();
  update_connected(to);
}

bool exchange_peers::on_lost(int connection, const std::string& cause) {
  bool any = false;
  for (auto& each : peers_) {
    if (each.connection != connection || !each.status.lost_cause.empty()) continue;
    each.status.lost_cause = cause;
    each.status.lost_at = std::chrono::steady_clock::now();
    any = true;
  }
  return any;
}

std::vector<int> exchange_peers::to_reconnect() const {
  std::vector<int> members;
  for (int i = 0; i < group_.size(); ++i) {
    const auto& peer = (*this)[i];
    if (i == group_.member || peer.status.is_connected) continue;
    bool is_old = peer.greeted_by > fabric_.num_ends_of(peer.connection);
    if (is_old || !peer.status.lost_cause.empty()) members.push_back(i);
  }
  return members;
}

std::map<int, ended_groups::member> exchange_peers::take_present() {
  std::map<int, ended_groups::member> present;
  for (int i = 0; i < group_.size(); ++i) {
    auto& peer = (*this)[i];
    if (i != group_.member && peer.is_present()) present[i] = {peer.connection, peer.take_unfetched()};
  }
  return present;
}

}  // namespace troupe::collective
