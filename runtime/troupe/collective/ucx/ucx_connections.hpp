#pragma once
#include <chrono>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "troupe/collective/ucx/message_header.hpp"
#include "troupe/transport/ucx_worker.hpp"

namespace troupe {

/// A message between members, to be sent or to be received.
struct ucx_message final : network::transfer {
  int peer = 0;
  message_header header;
  std::vector<std::byte> own_bytes;  ///< of one that is no call's
  std::span<std::byte> place;        ///< where a received one goes
  bool is_of_call = false;           ///< whether a call waits for it
  void set_done() { is_done_ = true; }
};

/// The connections of one member of a group to all others: a UCX worker of its own and an endpoint for each.
/// Not thread-safe.
///
/// What is sent without waiting for the receiver is bounded: every so manieth message of calls to a peer ends
/// only when the peer has received it.
class ucx_connections {
 public:
  /// What is told, within progress(), send() and fetch().
  class listener {
   public:
    /// `body`: the bytes, valid until it returns; or their number, if they are to be fetched by `descriptor`.
    /// Whether the descriptor will be fetched later than before it returns.
    virtual bool on_message(const message_header& header, std::span<const std::byte> body,
                            void* descriptor) = 0;
    /// It was sent or fetched: its bytes may be changed, or are there.
    virtual void on_done(ucx_message& done) = 0;
    virtual void on_lost(int member, const std::string& cause) = 0;

   protected:
    ~listener() = default;
  };

  /// `told` outlives it. Throws ucx_error.
  ucx_connections(ucp_context_h context, int num_members, listener& told);
  /// Nothing is read from or written to anybody's tensors afterwards, whatever was in flight; nothing is
  /// told.
  ~ucx_connections();
  ucx_connections(const ucx_connections&) = delete;
  ucx_connections& operator=(const ucx_connections&) = delete;

  std::vector<std::byte> address() const { return worker_->address(); }
  void connect(int member, std::span<const std::byte> address);
  /// `bytes` stay valid until it is done. Nothing goes to a member that is lost.
  void send(const std::shared_ptr<ucx_message>& sent, std::span<const std::byte> bytes);
  /// What was announced with `descriptor`, to its place. Nothing comes from a member that is lost.
  void fetch(const std::shared_ptr<ucx_message>& received, void* descriptor);

  /// Whether anything was done. Rethrows what the listener threw.
  bool progress();
  /// Progress until all that was sent has left, or `deadline`.
  void flush(std::chrono::steady_clock::time_point deadline);
  /// False: there is work already. event_fd() becomes readable when something happens afterwards.
  bool arm() { return worker_->arm(); }
  int event_fd() const { return worker_->event_fd(); }

 private:
  struct peer {
    ucx_connections* at = nullptr;
    int member = 0;
    ucp_ep_h endpoint = nullptr;
    bool is_lost = false;
    int num_unconfirmed = 0;  ///< sent since the last one whose end says that it was received
  };
  struct flight {
    ucx_connections* at;
    std::shared_ptr<ucx_message> message;
    std::list<flight>::iterator self;
  };

  static ucs_status_t on_message(void* self, const void* head, std::size_t head_bytes, void* body,
                                 std::size_t body_bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* flying);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* flying);
  static void on_broken(void* of, ucp_ep_h endpoint, ucs_status_t status);

  flight& start(const std::shared_ptr<ucx_message>& of);
  void land(void* request, flight& of, ucs_status_t status);
  void finish(flight& of, ucs_status_t status);
  void lose(peer& of, ucs_status_t status);
  void close();

  listener& told_;
  std::unique_ptr<ucx_worker> worker_;
  std::vector<peer> peers_;  ///< by member
  std::list<flight> in_flight_;
  enum class phase : std::uint8_t { running, closing, destroying };
  phase phase_ = phase::running;
  std::exception_ptr failure_;  ///< of the listener
};

}  // namespace troupe
