#pragma once
#include <chrono>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/net/messages.hpp"
#include "troupe/transport/ucx_worker.hpp"

namespace troupe {

/// A message to be sent or received.
struct ucx_message final : net::transfer {
  int peer = 0;
  net::message_header header;
  std::vector<std::byte> own_bytes;  ///< of a message that belongs to no call
  std::span<std::byte> place;        ///< where a received message goes
  bool is_of_call = false;           ///< whether it belongs to a call
  void set_done() { is_done_ = true; }
};

/// The connections of one member of a group: a UCX worker, and an endpoint for each other member. Not
/// thread-safe.
///
/// Flow control: every 64th message of calls to a peer is sent by rendezvous, which ends only when the peer
/// has received it. So the number of messages that wait unreceived at a peer is bounded.
class ucx_connections {
 public:
  /// Called within progress(), send() and fetch().
  class listener {
   public:
    /// A message has arrived. `body`: its bytes, valid until this returns. With a descriptor the body has
    /// only a size, and fetch() gets the bytes. Returns whether fetch() will be called after this has
    /// returned.
    virtual bool on_message(const net::message_header& header, std::span<const std::byte> body,
                            void* descriptor) = 0;
    /// A message was sent, and its bytes may be changed; or fetched, and its bytes are complete.
    virtual void on_done(ucx_message& done) = 0;
    virtual void on_lost(int member, const std::string& cause) = 0;

   protected:
    ~listener() = default;
  };

  /// `callbacks` outlives it. Throws ucx_error.
  ucx_connections(ucp_context_h context, int num_members, listener& callbacks);
  /// Cancels what is in request: no tensor is read or written afterwards. The listener is not called.
  ~ucx_connections();
  ucx_connections(const ucx_connections&) = delete;
  ucx_connections& operator=(const ucx_connections&) = delete;

  std::vector<std::byte> address() const { return worker_->address(); }
  void connect(int member, std::span<const std::byte> address);
  /// `bytes` stay valid until the message is done. Does nothing for a member whose connection is lost.
  void send(const std::shared_ptr<ucx_message>& sent, std::span<const std::byte> bytes);
  /// Copies the bytes that `descriptor` names to `received->place`. Does nothing for a member whose
  /// connection is lost.
  void fetch(const std::shared_ptr<ucx_message>& received, void* descriptor);

  /// Whether anything was done. Rethrows what the listener threw.
  bool progress();
  /// Progress until all sends have left this process, or `deadline`.
  void flush(std::chrono::steady_clock::time_point deadline);
  /// Prepares to sleep on event_fd(), which becomes readable when something happens afterwards. False:
  /// progress() has something to do already.
  bool arm() { return worker_->arm(); }
  int event_fd() const { return worker_->event_fd(); }

 private:
  struct peer {
    ucx_connections* at = nullptr;
    int member = 0;
    ucp_ep_h endpoint = nullptr;
    bool is_lost = false;
    int num_unacknowledged = 0;  ///< messages since the last one sent by rendezvous
  };
  struct pending_message {
    ucx_connections* at;
    std::shared_ptr<ucx_message> message;
    std::list<pending_message>::iterator self;
  };

  static ucs_status_t on_message(void* self, const void* head, std::size_t head_bytes, void* body,
                                 std::size_t body_bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* user_data);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* user_data);
  static void on_broken(void* of, ucp_ep_h endpoint, ucs_status_t status);

  pending_message& start(const std::shared_ptr<ucx_message>& of);
  void on_completed(void* handle, pending_message& of, ucs_status_t status);
  void finish(pending_message& of, ucs_status_t status);
  void mark_lost(peer& of, ucs_status_t status);
  void close();

  listener& listener_;
  std::unique_ptr<ucx_worker> worker_;
  std::vector<peer> peers_;  ///< by member
  std::list<pending_message> in_flight_;
  enum class phase : std::uint8_t { running, closing, destroying };
  phase phase_ = phase::running;
  std::exception_ptr failure_;  ///< of the listener
};

}  // namespace troupe
