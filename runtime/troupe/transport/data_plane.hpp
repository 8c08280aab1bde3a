#pragma once
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/transport/arrival_room.hpp"
#include "troupe/transport/head_reader.hpp"
#include "troupe/transport/head_writer.hpp"
#include "troupe/transport/plane.hpp"
#include "troupe/transport/ucx_worker.hpp"

namespace troupe {

class data_plane;

/// A tensor on its way to or from a peer, with the memory that UCX may read or write meanwhile.
struct tensor_transfer {
  data_plane* plane = nullptr;
  int peer = 0;
  tensor value;                           ///< that is sent
  std::vector<std::byte> head;            ///< of it
  std::optional<tensor_arrival> arrival;  ///< that is fetched
  std::list<tensor_transfer>::iterator self;
};
using transfer_list = std::list<tensor_transfer>;

/// The tensors of one generation: a worker without error handling, free to use shared memory. A dead peer
/// does not show here; what was sent to it stays in flight until stop(). Not thread-safe: the transport
/// serialises all calls. What arrives is collected and never delivered from inside.
class data_plane {
 public:
  /// Throws ucx_error. `settings` must outlive it.
  data_plane(ucp_context_h context, plane_settings& settings, std::uint64_t generation);
  data_plane(const data_plane&) = delete;
  data_plane& operator=(const data_plane&) = delete;
  ~data_plane();

  /// The nonce of the generation, then the worker's address.
  std::vector<std::byte> address() const;
  /// Readable when something happens after a successful arm().
  int event_fd() const { return worker_->event_fd(); }
  /// Whether anything was done.
  bool progress() { return worker_->progress(); }
  /// False: there is work already, or work that makes no event, so do not sleep.
  bool arm() { return arrivals_.empty() && !has_failures() && worker_->arm(); }
  /// A peer that cannot be connected (it may just have died) becomes a failure.
  void connect(std::uint64_t generation, const std::map<int, node_address>& peers);
  /// Whether nothing is left to do; if not, the progress thread must be awake. A peer without a connection:
  /// dropped.
  bool send(int to_rank, const tensor_tag& tag, const std::optional<authentication_code>& body_code,
            tensor&& value);
  /// To be called where nobody waits for what it does: makes what comes next faster.
  void prepare() { room_.prepare(); }

  /// `into` is empty.
  void take_arrivals(std::vector<tensor_arrival>& into) { into.swap(arrivals_); }
  bool has_failures() const { return !failures_.empty() || !lost_.empty(); }
  std::vector<peer_failure> take_failures() { return std::exchange(failures_, {}); }
  /// Tensors that came and could not be taken in; rank -1: from whom is not known. At most most_lost at once,
  /// whatever strangers send.
  std::vector<peer_failure> take_lost() { return std::exchange(lost_, {}); }

  /// Destroys the worker without waiting for anybody and returns what was in flight. Peers that have not
  /// stopped may still read the memory of what was being sent. Nothing else may be called afterwards.
  transfer_list stop();

 private:
  struct peer {
    ucp_ep_h endpoint = nullptr;
    head_writer heads;
    bool was_heard = false;  ///< since then it is connected for good
  };
  static ucs_status_t on_frame(void* self, const void* head, std::size_t head_bytes, void* body,
                               std::size_t body_bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* transfer);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* transfer);

  /// A tensor that was announced and is not fetched yet.
  struct announced {
    tensor_arrival arrival;
    tensor_layout layout;
    void* descriptor = nullptr;  ///< of UCX
  };
  void receive(std::span<const std::byte> head, const void* body, std::size_t body_bytes);
  ucs_status_t receive_announced(std::span<const std::byte> head, void* descriptor, std::size_t body_bytes);
  std::span<const std::byte> open(std::span<const std::byte> head, std::size_t body_bytes);
  bool may_fetch() const { return num_fetching_ < most_fetches_ && phase_ == phase::running; }
  void fetch(announced what);
  void fetch_announced();
  void finish_fetch(tensor_transfer& transfer, ucs_status_t status);
  void finish_reads();
  bool settle();
  tensor_transfer& start(int peer);
  void end(tensor_transfer& transfer);
  void fail(int rank, const std::string& action, ucs_status_t status);
  void lose(int rank, const char* cause);

  plane_settings& settings_;
  std::uint64_t generation_;
  const receiver_nonce nonce_;
  std::unique_ptr<ucx_worker> worker_;
  enum class phase { running, finishing_reads, destroying };
  phase phase_ = phase::running;
  std::map<int, peer> peers_;
  head_reader reader_;
  transfer_list in_flight_;
  transfer_list ended_;          ///< to be used again, for the memory of their heads
  std::vector<std::byte> head_;  ///< of what is to be sent
  tensor_arrival opened_;        ///< of what came
  arrival_room room_;
  const std::size_t most_fetches_;
  std::size_t num_fetching_ = 0;
  std::deque<announced> announced_;  ///< waiting for others to be fetched
  std::vector<tensor_arrival> arrivals_;
  std::vector<peer_failure> failures_, lost_;
};

}  // namespace troupe
