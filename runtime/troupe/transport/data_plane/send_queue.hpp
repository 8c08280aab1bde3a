#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>

#include "troupe/messaging/authenticator.hpp"
#include "troupe/tensor/tensor.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::transport {

/// A tensor on its way to one peer.
struct outgoing_tensor {
  tensor_tag tag;
  std::optional<messaging::authentication_code>
      body_code;  ///< of the elements; none: tensors are not verified
  tensor value;
  std::chrono::steady_clock::time_point put_at = {};  ///< when it was queued, for a send_delay
};

/// In which order tensors go over a busy link: the lowest first.
/// 1. What an action or a recovery waits for.
/// 2. Gradients between replicas: those of a step in the order in which the next forward needs their weights
///    (by stage and bucket), whatever the order in which the backward computes them (Jayarajan et al. 2019,
///    "Priority-based Parameter Propagation", section 3).
/// 3. Copies of the state.
using send_order = std::tuple<int, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>;
send_order send_order_of(const tensor_tag& tag);

/// What UCX has been given for a peer and has not completed.
struct bytes_in_flight {
  std::size_t gradients = 0;  ///< bytes of gradients between replicas
  std::size_t copies = 0;     ///< bytes of copies of the state
  void add(const tensor_tag& tag, std::size_t count);
  void subtract(const tensor_tag& tag, std::size_t count);
};

/// The tensors that wait to be sent to one peer, and which is next. Gradients between replicas wait here
/// while many of them are under way already, since what is on the link cannot be overtaken; copies of the
/// state while many of either are. All others do not wait.
class send_queue {
 public:
  /// So many bytes under way keep any link busy until the next ones follow.
  static constexpr std::size_t max_bytes_in_flight = std::size_t{4} << 20;

  /// Whether a tensor is to be sent at once.
  static bool may_go(const tensor_tag& tag, const bytes_in_flight& now);
  bool empty() const { return held_.empty(); }
  void put(outgoing_tensor&& value) { held_.emplace(send_order_of(value.tag), std::move(value)); }
  /// Of the next one; the queue must not be empty.
  const outgoing_tensor& front() const { return held_.begin()->second; }
  /// Those of one order as they were put.
  outgoing_tensor take() { return std::move(held_.extract(held_.begin()).mapped()); }

 private:
  std::multimap<send_order, outgoing_tensor> held_;
};

}  // namespace troupe::transport
