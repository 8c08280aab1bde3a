#pragma once
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "troupe/transport/data_plane/send_queue.hpp"
#include "troupe/transport/emulated_rate.hpp"

namespace troupe::transport {

/// The outgoing link of a process at a given rate: carries one tensor after the other, and lets each go when
/// its last byte is over.
class emulated_link {
 public:
  using clock = std::chrono::steady_clock;
  using tensor_to = std::pair<int, outgoing_tensor>;  ///< the rank that gets it

  explicit emulated_link(emulated_rate rate) : rate_(std::move(rate)) {}
  bool exists() const { return rate_ && *rate_ > 0; }
  bool is_busy() const { return on_it_ != nullptr; }
  /// Begins with a tensor; it must not be busy.
  void carry(int to_rank, outgoing_tensor&& value) {
    auto rate = static_cast<double>(*rate_);  // 0: the link was taken away meanwhile
    auto bytes = static_cast<double>(value.value.size_bytes());
    std::chrono::duration<double> takes(rate > 0 ? bytes / rate : 0);
    free_at_ = std::max(free_at_, value.put_at) + std::chrono::duration_cast<clock::duration>(takes);
    on_it_ = std::make_unique<tensor_to>(to_rank, std::move(value));
  }
  /// The tensor that is over; null: none is.
  std::unique_ptr<tensor_to> take() { return clock::now() < free_at_ ? nullptr : drop(); }
  /// The tensor that is on its way; null: none is.
  std::unique_ptr<tensor_to> drop() { return std::move(on_it_); }

 private:
  emulated_rate rate_;
  clock::time_point free_at_ = {};
  std::unique_ptr<tensor_to> on_it_;
};

}  // namespace troupe::transport
