#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"
#include "troupe/collective/diagnostics/failure_report.hpp"
#include "troupe/collective/net/ucx_connections.hpp"
#include "troupe/collective/operation.hpp"

namespace troupe {

/// What this member knows of another one from its messages.
struct peer_status {
  bool is_connected = false;  ///< its hello has arrived
  bool has_left = false;      ///< it has ended the group normally
  bool has_aborted = false;   ///< its failure message has arrived
  std::string lost_cause;     ///< why its connection has ended; empty: it has not
  std::chrono::steady_clock::time_point lost_at;
  std::uint64_t sequence = 0;            ///< of its newest collective call
  call_signature signature;              ///< of that call
  std::optional<failure_report> report;  ///< its reply to the last request
  int num_pending = 0;                   ///< transfers of calls with it that are not done
};

/// The last collective calls of this member, for comparison with messages that arrive late.
class call_log {
 public:
  void add(std::uint64_t sequence, const call_signature& signature) {
    calls_.insert_or_assign(sequence, signature);
    if (calls_.size() > capacity) calls_.erase(calls_.begin());
  }
  /// Null if the call is unknown: too old, or not made yet.
  const call_signature* find(std::uint64_t sequence) const {
    auto at = calls_.find(sequence);
    return at == calls_.end() ? nullptr : &at->second;
  }
  std::uint64_t newest() const { return calls_.empty() ? 0 : calls_.rbegin()->first; }

 private:
  static constexpr std::size_t capacity = 64;
  std::map<std::uint64_t, call_signature> calls_;
};

/// Exchanges the messages of one member of a group over UCX. It matches received messages with posted
/// receives, stores those that arrive early, compares all of them with the calls that this member makes, and
/// records what they say about their senders. Not thread-safe; callbacks run within progress().
class ucx_exchange final : public net::message_exchange, private ucx_connections::listener {
 public:
  struct callbacks {
    /// Makes the reply to a report request.
    std::function<failure_report()> describe = nullptr;
    /// A member has aborted the group.
    std::function<void(int from, const failure_report& why)> on_failure = nullptr;
  };

  /// `group` outlives it. Throws ucx_error.
  ucx_exchange(ucp_context_h context, const group_description& group, callbacks hooks);

  std::vector<std::byte> address() const { return connections_.address(); }
  /// `group_number`: the same on all members. `addresses` by member.
  void connect(std::uint64_t group_number, const std::vector<std::string>& addresses);

  void begin_call(std::uint64_t sequence, const call_signature& signature) override;
  std::shared_ptr<const net::transfer> post_send(int to, const net::message_key& key,
                                                 const call_signature& signature,
                                                 std::span<const std::byte> bytes) override;
  std::shared_ptr<const net::transfer> post_receive(int from, const net::message_key& key,
                                                    const call_signature& expected,
                                                    std::span<std::byte> bytes) override;
  void post_call_notice(int to, std::uint64_t sequence, const call_signature& signature) override;
  /// Sends a message that belongs to no call to all members with a connection.
  void send_to_all(net::message_kind kind, const std::string& text = {});
  void clear_reports();

  /// Whether anything was done. Throws collective_error (mismatch) if a message of a different call has
  /// arrived.
  bool progress() { return connections_.progress(); }
  ucx_connections& connections() { return connections_; }

  const peer_status& status_of(int member) const { return peers_[static_cast<std::size_t>(member)].status; }
  const call_log& calls() const { return calls_; }

 private:
  using message = ucx_message;
  struct early_message {
    net::message_header header;
    std::vector<std::byte> bytes;
    void* descriptor = nullptr;  ///< of a message that is fetched when its receive is posted
    std::size_t size_bytes = 0;  ///< of the elements
    std::span<const std::byte> body() const { return {descriptor ? nullptr : bytes.data(), size_bytes}; }
  };
  struct peer {
    peer_status status;
    std::map<net::message_key, std::shared_ptr<message>> posted;
    std::map<net::message_key, early_message> early;
  };

  bool on_message(const net::message_header& header, std::span<const std::byte> body,
                  void* descriptor) override;
  void on_done(ucx_message& done) override;
  void on_lost(int member, const std::string& cause) override;

  void record_call(peer& of, const net::message_header& header);
  bool accept_elements(peer& from, const net::message_header& header, std::span<const std::byte> body,
                       void* descriptor);
  /// `body`: the bytes; or, with a descriptor, their number: they are fetched.
  void deliver(const std::shared_ptr<message>& into, const net::message_header& header,
               std::span<const std::byte> body, void* descriptor);
  void send_control(int member, net::message_kind kind, const std::string& text);
  std::shared_ptr<message> message_of_call(int peer, const net::message_key& key,
                                           const call_signature& signature);
  net::message_header header(net::message_kind kind) const;
  void require_same_call(const net::message_header& theirs, const call_signature& own) const;

  const group_description& group_;
  callbacks hooks_;
  std::uint64_t group_number_ = 0;
  std::vector<peer> peers_;  ///< by member
  call_log calls_;
  ucx_connections connections_;  // ends first
};

}  // namespace troupe
