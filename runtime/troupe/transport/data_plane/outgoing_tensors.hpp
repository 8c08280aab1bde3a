#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/transport/data_plane/send_queue.hpp"
#include "troupe/transport/send_delay.hpp"

namespace troupe::transport {

/// The tensors that wait to be sent, for each peer (send_queue), and what is under way to it. With a
/// send_delay every tensor waits until that lets it go; one at a time, of all peers.
class outgoing_tensors {
 public:
  using tensor_to = std::pair<int, outgoing_tensor>;  ///< the rank that gets it

  explicit outgoing_tensors(send_delay_ptr delay) : delay_(std::move(delay)) {}
  /// Whether a tensor is to be sent at once: add it to what is under way then, else to those that wait.
  bool may_go(int to_rank, const tensor_tag& tag) const;
  void wait(int to_rank, outgoing_tensor&& value);
  bool has_waiting() const { return num_waiting_ > 0; }
  /// The next tensor that may go now; it no longer waits. None: there is none yet.
  std::optional<tensor_to> take();
  /// Whether a tensor is delayed, whose end makes no event.
  bool has_delayed() const { return delayed_.has_value(); }

  void begin(int to_rank, const tensor_tag& tag, std::size_t bytes) {
    peers_[to_rank].in_flight.add(tag, bytes);
  }
  void complete(int to_rank, const tensor_tag& tag, std::size_t bytes) {
    peers_[to_rank].in_flight.subtract(tag, bytes);
  }
  /// All that wait, also the delayed one. They are not sent.
  std::vector<tensor_to> drop();

 private:
  struct peer {
    bytes_in_flight in_flight;
    send_queue waiting;
  };
  bool delays() const { return delay_ && delay_->is_on(); }
  std::optional<tensor_to> take_delayed();
  std::map<int, peer>::iterator first_in_order();

  std::map<int, peer> peers_;
  std::size_t num_waiting_ = 0;  ///< in the queues of all peers, and delayed
  send_delay_ptr delay_;
  std::optional<tensor_to> delayed_;
  send_delay::time_point delayed_until_ = {};
};

}  // namespace troupe::transport
