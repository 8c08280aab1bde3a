#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/diagnostics/failure_report.hpp"
#include "troupe/collective/net/exchange/call_transfers.hpp"
#include "troupe/collective/net/exchange/exchange_peers.hpp"
#include "troupe/collective/net/exchange/network_fabric.hpp"
#include "troupe/collective/net/exchange/recent_calls.hpp"

namespace troupe::collective {

/// Exchanges the messages of one member of a group over the process's fabric. It compares all messages with
/// the calls that this member makes, and records what they say about their senders. Used by one thread at a
/// time, while any thread that polls the fabric receives for it.
class ucx_exchange final : public net::message_exchange, private message_owner {
 public:
  struct callbacks {
    /// Makes the reply to a report request. Called within progress().
    std::function<failure_report()> describe = nullptr;
    /// Something has come, and another thread has received it. From any thread.
    std::function<void()> wake = nullptr;
  };

  /// `group` outlives it. connections: of the other members, by member.
  ucx_exchange(std::shared_ptr<network_fabric> over, const group_description& group,
               const std::vector<int>& connections, callbacks hooks);
  /// Tells the others that this member has ended the group, unless abort() was called.
  ~ucx_exchange();

  void begin_call(std::uint64_t sequence, const call_signature& signature) override;
  std::shared_ptr<const net::transfer> post_send(int to, const net::message_key& key,
                                                 const call_signature& signature,
                                                 std::span<const std::byte> bytes) override;
  std::shared_ptr<const net::transfer> post_receive(int from, const net::message_key& key,
                                                    const call_signature& expected,
                                                    std::span<std::byte> bytes) override;
  void post_call_notice(int to, std::uint64_t sequence, const call_signature& signature) override;
  /// Another connection to a member, while the group is being made.
  void reconnect(int member, int connection);
  /// See exchange_peers.
  std::vector<int> members_to_reconnect() const;
  /// Sends a message that belongs to no call to all members with a connection.
  void send_to_all(net::message_kind kind, const std::string& text = {});
  void clear_reports();
  /// Tells the others the failure. No tensor of a call is read or written any more when it returns.
  void abort(const failure_report& why);

  /// Whether anything was done. Throws collective_error (mismatch) if a message of a different call has
  /// arrived, or the error that another member has reported.
  bool progress();
  /// The same, but an error waits for progress().
  void receive() { fabric_->progress(this); }
  /// Receives all messages that have arrived. Throws as progress().
  void drain();
  bool arm() { return fabric_->arm(); }
  int event_fd() const { return fabric_->event_fd(); }
  /// See network_fabric::sleeper.
  network_fabric& fabric() { return *fabric_; }

  peer_status status_of(int member) const;
  /// By member.
  std::vector<peer_status> statuses() const;
  int num_pending(int member) const;
  /// Whether a member has left, or its connection is lost.
  bool has_losses() const { return has_losses_.load(std::memory_order_relaxed); }
  /// The number of the newest collective call, and its signature if there was one.
  std::pair<std::uint64_t, std::optional<call_signature>> newest_call() const;
  /// From the member that has aborted the group, or why this process has ended its connections.
  std::optional<failure_report> received_failure() const;

 private:
  bool on_message(const net::message_header& header, std::span<const std::byte> body,
                  void* descriptor) override;
  void on_done(ucx_message& done) override { transfers_.on_done(done); }
  void on_lost(int connection, const std::string& cause) override;
  void on_ending(const std::vector<world_rank>& silent, const std::string& cause) override;
  void wake() override {
    if (hooks_.wake) hooks_.wake();
  }

  bool accept(const net::message_header& header, std::span<const std::byte> body, void* descriptor);
  void set_connection(int member, int connection);
  void send_control(int member, const net::message_header& header, const std::string& text);
  void send_control_to_all(net::message_kind kind, const std::string& text);
  net::message_header header(net::message_kind kind) const;
  net::message_header header_of_call(const net::message_key& key, const call_signature& signature) const;
  void handle_events();
  void leave(net::message_kind kind, const std::string& text);

  std::shared_ptr<network_fabric> fabric_;
  const group_description& group_;
  const std::uint64_t number_;
  callbacks hooks_;

  // With the lock of the fabric:
  std::uint32_t num_ends_ = 0;  ///< of this process's connections, when the exchange began
  recent_calls calls_;
  exchange_peers peers_;
  call_transfers transfers_;
  std::vector<int> report_requests_;  ///< members that wait for a reply
  std::optional<failure_report> received_failure_;
  std::exception_ptr failure_;  ///< thrown by the next progress()
  bool has_left_ = false;       ///< leave() was called

  std::atomic<bool> has_events_ = false;  ///< report requests or a failure
  std::atomic<bool> has_losses_ = false;
};

}  // namespace troupe::collective
