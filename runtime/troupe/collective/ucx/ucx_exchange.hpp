#pragma once
#include <chrono>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "troupe/collective/group.hpp"
#include "troupe/collective/ucx/call_log.hpp"
#include "troupe/collective/ucx/message_header.hpp"
#include "troupe/transport/ucx_worker.hpp"

namespace troupe {

/// What this member has heard of another one, by its messages.
struct heard_of {
  bool has_come = false;   ///< said hello
  bool has_left = false;   ///< ended the group when its calls were done
  std::string lost_cause;  ///< why there is no connection; empty: there is one
  std::chrono::steady_clock::time_point lost_at;
  std::uint64_t sequence = 0;         ///< of the newest of its collective calls
  call_signature signature;           ///< of that
  std::optional<std::string> answer;  ///< to the last question
  int num_awaited = 0;                ///< transfers of calls, from it and to it, that are not done
};

/// The messages of one member of a group: a UCX worker of its own with a connection to each of the others.
/// Not thread-safe; callbacks run within progress() and ~ucx_exchange().
///
/// What is sent without waiting for the receiver is bounded: every so manieth message to a peer ends only
/// when the peer has received it.
class ucx_exchange final : public network::exchange {
 public:
  struct callbacks {
    /// Answers a question.
    std::function<std::string()> describe = nullptr;
    /// A member gave up, and why.
    std::function<void(int from, std::span<const std::byte> why)> on_giving_up = nullptr;
  };

  /// Throws ucx_error.
  ucx_exchange(ucp_context_h context, const group_description& group, callbacks hooks);
  /// Nothing is read from or written to the members' tensors afterwards, whatever was in flight.
  ~ucx_exchange() override;

  std::vector<std::byte> address() const { return worker_->address(); }
  /// `group_number`: the same on all members. `addresses` by member.
  void connect(std::uint64_t group_number, const std::vector<std::string>& addresses);

  void begin_call(std::uint64_t sequence, const call_signature& signature) override;
  std::shared_ptr<const network::transfer> post_send(int to, const network::message_key& key,
                                                     const call_signature& signature,
                                                     std::span<const std::byte> bytes) override;
  std::shared_ptr<const network::transfer> post_receive(int from, const network::message_key& key,
                                                        const call_signature& expected,
                                                        std::span<std::byte> bytes) override;
  void post_note(int to, std::uint64_t sequence, const call_signature& signature) override;
  /// To everyone who can be reached: a message that no call waits for.
  void tell_all(message_kind kind, std::span<const std::byte> text);
  void forget_answers();

  /// Whether anything was done. Throws collective_error (mismatch) when members are seen to differ.
  bool progress();
  /// Progress until all that was sent has left, or `deadline`.
  void flush(std::chrono::steady_clock::time_point deadline);
  bool arm() { return worker_->arm(); }
  int event_fd() const { return worker_->event_fd(); }

  const heard_of& heard(int member) const { return peers_[static_cast<std::size_t>(member)].heard; }
  const call_log& calls() const { return calls_; }

 private:
  struct message;
  struct arrival {
    message_header header;
    std::vector<std::byte> bytes;
    void* descriptor = nullptr;  ///< of one that is fetched when it is wanted
    std::size_t announced = 0;   ///< its bytes
    std::span<const std::byte> body() const { return {descriptor ? nullptr : bytes.data(), announced}; }
  };
  struct peer {
    ucx_exchange* at = nullptr;
    int member = 0;
    ucp_ep_h endpoint = nullptr;
    heard_of heard;
    int num_unconfirmed = 0;  ///< sent since the last one whose end says that it was received
    std::map<network::message_key, std::shared_ptr<message>> posted;
    std::map<network::message_key, arrival> arrived;
  };

  static ucs_status_t on_message(void* self, const void* head, std::size_t head_bytes, void* body,
                                 std::size_t body_bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* sent);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* received);
  static void on_lost(void* of, ucp_ep_h endpoint, ucs_status_t status);

  ucs_status_t take(const message_header& header, std::span<const std::byte> body, void* descriptor);
  ucs_status_t take_elements(peer& from, const message_header& header, std::span<const std::byte> body,
                             void* descriptor);
  /// `body`: its bytes, or `announced` ones that `descriptor` fetches.
  void deliver(message& into, const message_header& header, std::span<const std::byte> body,
               void* descriptor);
  void send(peer& to, const std::shared_ptr<message>& sent, std::span<const std::byte> bytes);
  std::shared_ptr<message> start(peer& with, const message_header& header);
  void finish(message& done, ucs_status_t status);
  void lose(peer& of, const std::string& cause);
  void close_connections();
  message_header header(message_kind kind) const;
  void require_like(const message_header& theirs, const call_signature& own) const;

  const group_description& group_;
  callbacks hooks_;
  std::uint64_t group_number_ = 0;
  std::unique_ptr<ucx_worker> worker_;
  std::vector<peer> peers_;  ///< by member
  std::list<std::shared_ptr<message>> in_flight_;
  call_log calls_;
  enum class phase : std::uint8_t { running, closing, destroying };
  phase phase_ = phase::running;
  std::exception_ptr failure_;  ///< of a callback
};

}  // namespace troupe
