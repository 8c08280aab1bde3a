#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "troupe/collective/diagnostics/failure_report.hpp"
#include "troupe/collective/net/exchange/ucx_connections.hpp"

namespace troupe::collective {

/// What this member knows of another one from its messages.
struct peer_status {
  bool has_come = false;      ///< a hello of it has come
  bool is_connected = false;  ///< the hello came over, or before, its present connection, which was not lost
  bool is_ready = false;      ///< it has a hello of each other member
  bool has_left = false;      ///< it has ended the group normally
  bool has_aborted = false;   ///< its failure message has arrived
  std::string lost_cause;     ///< why its connection has ended; empty: it has not
  std::chrono::steady_clock::time_point lost_at;
  std::uint64_t sequence = 0;            ///< of its newest collective call
  call_signature signature;              ///< of the call with number `sequence`
  std::optional<failure_report> report;  ///< its reply to the last request
  int num_pending = 0;                   ///< transfers of calls with it that are not done
};

/// Another member in an exchange: its messages of calls that no receive has taken yet, the receives whose
/// messages have not come, and what is known of it.
class exchange_peer {
 public:
  /// A message of a call that has come before its receive.
  struct early_message {
    net::message_header header;
    std::vector<std::byte> bytes;
    void* descriptor = nullptr;  ///< of a message that is fetched when its receive is posted
    std::size_t size_bytes = 0;  ///< bytes of the elements
    std::span<const std::byte> body() const { return {descriptor ? nullptr : bytes.data(), size_bytes}; }
  };

  int connection = -1;
  peer_status status;
  int num_unacknowledged = 0;               ///< messages of calls since the last one sent by rendezvous
  std::optional<std::uint32_t> greeted_by;  ///< message_header::num_ends of its newest hello

  /// Whether it still is in the group and its connection lives.
  bool is_present() const { return !status.has_left && !status.has_aborted && status.lost_cause.empty(); }
  void post(const net::message_key& key, std::shared_ptr<ucx_message> receive) {
    posted_.emplace(key, std::move(receive));
  }
  /// The receive that waits for this message; null: none yet.
  std::shared_ptr<ucx_message> take_posted(const net::message_key& key);
  void keep(const net::message_header& header, std::span<const std::byte> body, void* descriptor);
  const early_message* find_early(const net::message_key& key) const;
  void forget_early(const net::message_key& key) { early_.erase(key); }
  const std::map<net::message_key, early_message>& early() const { return early_; }
  /// Forgets all receives and all messages, but for those that wait to be fetched.
  void discard();
  /// The descriptors of the messages that wait to be fetched, which are forgotten here.
  std::vector<void*> take_unfetched();

 private:
  std::map<net::message_key, std::shared_ptr<ucx_message>> posted_;
  std::map<net::message_key, early_message> early_;
};

}  // namespace troupe::collective
