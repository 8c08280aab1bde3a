#pragma once
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/transport/data_plane/arrival_buffer_cache.hpp"
#include "troupe/transport/data_plane/header_reader.hpp"
#include "troupe/transport/data_plane/header_writer.hpp"
#include "troupe/transport/data_plane/memory_sharing.hpp"
#include "troupe/transport/data_plane/outgoing_tensors.hpp"
#include "troupe/transport/plane.hpp"
#include "troupe/ucx/ucx_worker.hpp"

namespace troupe::transport {

class data_plane;

/// A tensor in flight to or from a peer, with the memory that UCX may access until the request completes.
struct tensor_transfer {
  data_plane* plane = nullptr;
  int peer = 0;
  tensor value;                           ///< the tensor that is sent; undefined when fetching
  tensor_tag tag;                         ///< of `value`
  peer_counters* counted = nullptr;       ///< of the peer; null: fetched, or a notice
  std::vector<std::byte> head;            ///< header of the sent tensor
  std::optional<tensor_arrival> arrival;  ///< the tensor that is fetched; none when sending
  std::list<tensor_transfer>::iterator self;
};
using transfer_list = std::list<tensor_transfer>;

/// Sends and receives the tensors of one generation through a UCX worker. Its endpoints have no error
/// handling, so that UCX may use shared memory. The death of a peer is not detected here; requests to it stay
/// in flight until stop(). Not thread-safe: the transport serialises all calls. Arrived tensors are collected
/// for take_arrivals(), not delivered by callbacks.
///
/// A tensor is an active message: header (tag, layout, code) and elements. Small tensors arrive eagerly with
/// their elements; of large ones the header is announced, and this process then fetches the elements from the
/// sender's memory (rendezvous), a limited number at a time. Elements in memory that the receiver reads in
/// place (memory_sharing) stay where they are: the header goes alone.
class data_plane {
 public:
  /// Throws ucx_error. `settings` and `shared`, whose memory peers read in place, must outlive it.
  data_plane(ucp_context_h context, plane_settings& settings, shared_memory::shared_heap& shared,
             std::uint64_t generation);
  data_plane(const data_plane&) = delete;
  data_plane& operator=(const data_plane&) = delete;
  ~data_plane();

  /// The nonce of the generation, where this process's shared memory is, then the worker's address.
  std::vector<std::byte> address() const;
  /// Readable when something happens after a successful arm().
  int event_fd() const { return worker_->event_fd(); }
  /// Whether anything was done.
  bool progress() {
    bool worked = worker_->progress();
    if (sharing_.has_notices()) send_notices();
    return (outgoing_.has_waiting() && send_waiting()) || worked;
  }
  /// False: do not sleep, because there is work already or work that makes no event.
  bool arm() { return arrivals_.empty() && !has_failures() && !sharing_.has_notices() && worker_->arm(); }
  /// Whether a tensor is delayed, whose end makes no event.
  bool must_look_often() const { return outgoing_.has_delayed(); }
  /// A peer that cannot be connected (it may just have died) is added to the failures.
  void connect(std::uint64_t generation, const std::map<int, process_address>& peers);
  /// Sends it in its turn (send_queue). Returns false if the progress thread must poll (a request is in
  /// flight or failed, or the tensor waits). A tensor to a peer without connection is dropped.
  bool send(int to_rank, const tensor_tag& tag,
            const std::optional<messaging::authentication_code>& body_code, tensor&& value);
  /// Allocates for the next arrival ahead; call it in idle time.
  void prepare() { room_.prepare(); }

  /// `into` must be empty.
  void take_arrivals(std::vector<tensor_arrival>& into) { into.swap(arrivals_); }
  bool has_failures() const { return !failures_.empty() || !lost_.empty(); }
  std::vector<peer_failure> take_failures() { return std::exchange(failures_, {}); }
  /// Tensors that arrived and could not be received; rank -1: unknown sender. At most max_lost entries, so
  /// that unauthenticated senders cannot exhaust memory.
  std::vector<peer_failure> take_lost() { return std::exchange(lost_, {}); }

  /// Destroys the worker without waiting for peers and returns the transfers in flight: keep them, because
  /// peers that have not stopped may still read the sent tensors. Call nothing else afterwards.
  transfer_list stop();

 private:
  struct peer {
    ucp_ep_h endpoint = nullptr;
    header_writer headers;
    peer_counters* counted = nullptr;
    bool was_heard = false;  ///< a message from it arrived: its connection is established
  };
  static ucs_status_t on_frame(void* self, const void* head, std::size_t head_bytes, void* body,
                               std::size_t body_bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* transfer);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* transfer);

  /// A large tensor whose header has arrived and whose elements are not fetched yet.
  struct announced {
    tensor_arrival arrival;
    tensor_layout layout;
    void* descriptor = nullptr;  ///< UCX's handle of the data, for the fetch
  };
  void receive(std::span<const std::byte> head, const void* body, std::size_t body_bytes);
  ucs_status_t receive_announced(std::span<const std::byte> head, void* descriptor, std::size_t body_bytes);
  std::span<const std::byte> open(std::span<const std::byte> head, std::size_t body_bytes);
  bool may_fetch() const { return num_fetching_ < max_fetches_ && phase_ == phase::running; }
  void fetch(announced next);
  void fetch_announced();
  void finish_fetch(tensor_transfer& transfer, ucs_status_t status);
  void finish_reads();
  bool poll_until_idle();
  bool send_now(int to_rank, outgoing_tensor&& what);
  bool send_frame(int to_rank, const tensor_tag& tag, const tensor_header_options& options, tensor&& value,
                  std::span<const std::byte> body, peer_counters* counted);
  void send_notices();
  void take_notice(const shared_place& notice, std::size_t body_bytes);
  std::optional<tensor> refer_to_shared(std::span<const std::byte> layout) const;
  bool send_waiting();
  tensor_transfer& start(int peer);
  void end(tensor_transfer& transfer);
  void note_ended(const tensor_transfer& transfer);
  std::string no_way_for_tensors(int rank) const;
  void fail(int rank, const std::string& action, ucs_status_t status);
  void lose(int rank, const char* cause);

  plane_settings& settings_;
  std::uint64_t generation_;
  const receiver_nonce nonce_;
  std::unique_ptr<ucx::ucx_worker> worker_;
  enum class phase { running, finishing_reads, destroying };
  phase phase_ = phase::running;
  std::map<int, peer> peers_;
  outgoing_tensors outgoing_;
  const shared_memory::shared_heap& shared_;
  memory_sharing sharing_;
  header_reader reader_;
  transfer_list in_flight_;
  transfer_list ended_;          ///< reused, for the memory of their headers
  std::vector<std::byte> head_;  ///< scratch: header of the tensor to send
  tensor_arrival opened_;        ///< scratch: header of the arriving tensor
  arrival_buffer_cache room_;
  const std::size_t max_fetches_;
  std::size_t num_fetching_ = 0;
  std::deque<announced> announced_;  ///< waiting until fewer fetches are in flight
  std::vector<tensor_arrival> arrivals_;
  std::vector<peer_failure> failures_, lost_;
};

}  // namespace troupe::transport
