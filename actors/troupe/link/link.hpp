#pragma once
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/error.hpp>
#include <caf/message.hpp>
#include <caf/message_id.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "troupe/link/wire_table.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::link {

struct link_options {
  int remote_rank = 0;
  std::uint32_t remote_incarnation = 0;
  std::uint64_t generation = 0;
  transport::transport* out = nullptr;
  /// A request that has no reply after this time fails. The process is alive then (membership finds those
  /// that are not), so the actor or a message is stuck.
  std::chrono::seconds request_timeout{10};
  /// Called once if a message cannot be sent, on the sender's thread; the link has ended by then.
  std::function<void(int rank, const std::string& cause)> on_failure = [](int, const std::string&) {};
};

/// The connection of this process's actors with the actors of one remote process, for one generation. Local
/// actors send to proxies. A proxy makes frames on the sender's thread: no other thread is woken up.
///
///   to a proxy          what happens
///   a message           a frame of kind one_way
///   a request           a frame of kind request with a number; the frame of kind reply with that number
///                       brings the remote actor's reply or error to the requester
///   monitor             a down message when the link ends
///
/// Every request to a proxy is answered, so requesters need no time limit of their own (caf::infinite). The
/// answer is the remote actor's, actor_error::timed_out after request_timeout, or actor_error::lost when the
/// process is lost or the generation ends. Errors of the link name the remote actor.
///
/// Requests of remote actors arrive through the inbound_gate with `answers()` as their sender, which sends
/// the reply.
///
/// Thread-safe. Its owner calls end().
class link : public std::enable_shared_from_this<link> {
 public:
  static std::shared_ptr<link> make(caf::actor_system& system, link_options options);

  /// For the remote actor of this role and number. The same one each time.
  caf::actor proxy(actor::actor_role role, std::uint32_t number);
  /// The sender of the remote process's requests to local actors. What it gets goes back as their reply.
  const caf::actor& answers() const { return answers_; }
  /// Sends the reply to a request of the remote process.
  void reply(std::uint64_t request, const caf::message& content);
  /// The reply to a request of this process, from a frame with a body of `frame_bytes`. False: that request
  /// is over.
  bool on_reply(std::uint64_t request, const caf::message& content, std::size_t frame_bytes);
  /// Ends the proxies and all requests, with actor_error::lost. `cause`: "rank 3 was lost: killed by
  /// SIGKILL". Whether it had not ended before.
  bool end(const std::string& cause);

 private:
  struct waiting_request {
    caf::strong_actor_ptr requester;
    caf::message_id id;  ///< as the requester knows it
    actor::actor_name to;
    std::chrono::steady_clock::time_point due;
  };
  using requests = std::map<std::uint64_t, waiting_request>;

  link(caf::actor_system& system, link_options options) : system_(system), options_(std::move(options)) {}
  void forward(const actor::actor_name& to, caf::mailbox_element& message);
  void request(const actor::actor_name& to, caf::mailbox_element& message);
  void send(const message_head& head, const caf::message& content);
  std::optional<std::chrono::nanoseconds> end_overdue();
  caf::actor spawn_timer();
  void fail(const std::string& cause);

  caf::actor_system& system_;
  link_options options_;
  caf::actor answers_;

  std::mutex mutex_;
  std::optional<std::string> ended_by_;  ///< never changes once it is set
  std::uint64_t num_requests_ = 0;
  requests waiting_;  ///< the earliest due first, since all have the same time limit
  std::map<actor::actor_name, caf::actor> proxies_;
  caf::actor timer_;           ///< ends overdue requests; spawned with the first request
  bool timer_is_set_ = false;  ///< a delayed check_requests is under way to it
};

}  // namespace troupe::actors::link
