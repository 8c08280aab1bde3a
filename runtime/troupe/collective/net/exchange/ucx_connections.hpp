#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/net/exchange/messages.hpp"
#include "troupe/posix/sockets/epoll_set.hpp"
#include "troupe/ucx/ucx_worker.hpp"

namespace troupe::collective {

class message_owner;

/// A message to be sent or received.
struct ucx_message final : net::transfer {
  message_owner* owner = nullptr;  ///< told when the message is done; null: nobody is
  int connection = 0;
  int member = 0;  ///< of the owner's group: the other one
  net::message_header header;
  std::vector<std::byte> own_bytes;  ///< of a message that belongs to no call
  std::span<std::byte> place;        ///< where a received message goes
  std::size_t size_bytes = 0;        ///< bytes of a message in flight
  bool is_of_call = false;           ///< whether it belongs to a call
  bool by_rendezvous = false;        ///< sent so, whatever its size: done when it was received
  void set_done() { is_done_ = true; }
};

/// A UCX worker, and an endpoint for each process that this one is connected to. A connection that is lost
/// stays so; its process gets a new one. Not thread-safe, but for what says so.
class ucx_connections {
 public:
  /// Called within progress(), send() and fetch().
  class listener {
   public:
    /// A message has arrived. `body`: its bytes, valid until this returns. With a descriptor the body has
    /// only a size, and fetch() gets the bytes. Returns whether fetch() or release() will be called after
    /// this has returned; otherwise the sender's message is done.
    virtual bool on_message(const net::message_header& header, std::span<const std::byte> body,
                            void* descriptor) = 0;
    /// A message was sent, and its bytes may be changed; or fetched, and its bytes are complete.
    virtual void on_done(ucx_message& done) = 0;
    virtual void on_lost(int connection, const std::string& cause) = 0;

   protected:
    ~listener() = default;
  };

  /// `callbacks` outlives it. Throws ucx_error.
  ucx_connections(ucp_context_h context, listener& callbacks);
  /// Cancels what is in flight: no tensor is read or written afterwards. The listener is not called.
  ~ucx_connections();
  ucx_connections(const ucx_connections&) = delete;
  ucx_connections& operator=(const ucx_connections&) = delete;

  /// Of this process; after end() another one.
  std::string address();
  /// How often end() was called. From any thread.
  std::uint32_t num_ends() const { return num_ends_; }
  /// A connection to the process whose worker has this address. One that is lost at once is returned too.
  int connect(const std::string& address);
  /// Does nothing if it is lost already.
  void lose(int connection, const std::string& cause);
  bool is_lost(int connection) const { return peers_[static_cast<std::size_t>(connection)].is_lost; }
  /// Loses all connections: when it returns nothing is in flight, and no tensor is read or written. The next
  /// connect() begins anew, with another address.
  void end(const std::string& cause);

  /// `bytes` stay valid until the message is not in flight any more. Does nothing on a lost connection.
  void send(const std::shared_ptr<ucx_message>& sent, std::span<const std::byte> bytes);
  /// Copies the bytes that `descriptor` names to `received->place`. Does nothing on a lost connection.
  void fetch(const std::shared_ptr<ucx_message>& received, void* descriptor);
  /// Instead of fetch(): the bytes are not wanted. The sender's message is done. For connections that are not
  /// lost.
  void release(void* descriptor);
  /// Whether messages of `owner` that belong to calls are in flight, and how many bytes.
  bool has_in_flight(const message_owner* owner) const;
  /// The connections of these messages.
  std::set<int> in_flight_of(const message_owner* owner) const;
  /// Whether messages that belong to no call are in flight over other connections.
  bool has_other_in_flight(const std::set<int>& connections) const;
  std::size_t bytes_in_flight(const message_owner* owner) const;
  /// The owner is not told any more about its other messages.
  void forget(const message_owner* owner);

  /// Whether anything was done. Rethrows what the listener threw.
  bool progress();
  /// Progress until all sends have left this process, or `deadline`.
  void flush(std::chrono::steady_clock::time_point deadline);
  /// Prepares to sleep on event_fd(), which becomes readable when something happens afterwards. False:
  /// progress() has something to do already.
  bool arm() { return !worker_ || worker_->arm(); }
  /// The same as long as this lives, also after end(). From any thread.
  int event_fd() const { return events_.fd(); }

 private:
  struct peer {
    ucx_connections* connections = nullptr;
    int connection = 0;
    ucp_ep_h endpoint = nullptr;
    bool is_lost = false;
  };
  struct pending_message {
    ucx_connections* connections;
    std::shared_ptr<ucx_message> message;
    std::list<pending_message>::iterator self;
  };

  void begin();
  static ucs_status_t on_message(void* self, const void* head, std::size_t head_bytes, void* body,
                                 std::size_t body_bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* user_data);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* user_data);
  static void on_broken(void* lost_peer, ucp_ep_h endpoint, ucs_status_t status);

  pending_message& start(const std::shared_ptr<ucx_message>& message);
  void on_completed(void* handle, pending_message& pending, ucs_status_t status);
  void finish(pending_message& pending, ucs_status_t status);
  void mark_lost(peer& lost, const std::string& cause);
  void close(const std::vector<peer*>& closed);
  void destroy();

  ucp_context_h context_;
  listener& listener_;
  posix::epoll_set events_;                  ///< sleeps on the worker's descriptor
  std::unique_ptr<ucx::ucx_worker> worker_;  ///< null once end() was called
  std::atomic<std::uint32_t> num_ends_ = 0;
  std::deque<peer> peers_;     ///< by connection
  std::vector<peer*> broken_;  ///< lost, with an endpoint that has to be closed
  std::list<pending_message> in_flight_;
  enum class phase : std::uint8_t { running, closing, destroying };
  phase phase_ = phase::running;
  std::exception_ptr failure_;  ///< an exception of the listener, which the next poll throws
};

}  // namespace troupe::collective
