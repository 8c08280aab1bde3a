#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/transport/data_plane/emulated_link.hpp"
#include "troupe/transport/data_plane/send_queue.hpp"

namespace troupe::transport {

/// The tensors that wait to be sent, for each peer (send_queue), and what is under way to it. With an
/// emulated_link, which the peers share, every tensor waits until its last byte is over.
class outgoing_tensors {
 public:
  using tensor_to = emulated_link::tensor_to;

  explicit outgoing_tensors(emulated_rate link) : link_(std::move(link)) {}
  /// Whether a tensor is to be sent at once: add it to what is under way then, else to those that wait.
  bool may_go(int to_rank, const tensor_tag& tag) const;
  void wait(int to_rank, outgoing_tensor&& value);
  bool has_waiting() const { return num_waiting_ > 0; }
  /// The next tensor that may go now; it no longer waits. None: there is none yet.
  std::optional<tensor_to> take();
  /// Whether a tensor is on the emulated_link, whose end makes no event.
  bool is_on_link() const { return link_.is_busy(); }

  void begin(int to_rank, const tensor_tag& tag, std::size_t bytes) {
    peers_[to_rank].in_flight.add(tag, bytes);
  }
  void complete(int to_rank, const tensor_tag& tag, std::size_t bytes) {
    peers_[to_rank].in_flight.subtract(tag, bytes);
  }
  /// All that wait, also on the link. They are not sent.
  std::vector<tensor_to> drop();

 private:
  struct peer {
    bytes_in_flight in_flight;
    send_queue waiting;
  };
  std::optional<tensor_to> take_over_link();
  std::map<int, peer>::iterator first_in_order();

  std::map<int, peer> peers_;
  std::size_t num_waiting_ = 0;  ///< in the queues of all peers, and on the link
  emulated_link link_;
};

}  // namespace troupe::transport
