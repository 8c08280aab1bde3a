#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "troupe/transport/send_delay.hpp"

namespace troupe::bench {

/// The outgoing link of a process at a given rate, which carries one tensor after the other.
class emulated_link final : public transport::send_delay {
 public:
  /// 0: there is none. From any thread.
  void set_bytes_per_s(std::uint64_t rate) { bytes_per_s_ = rate; }

  bool is_on() const override { return bytes_per_s_ > 0; }
  time_point end_of(std::size_t num_bytes, time_point put_at) override {
    auto rate = static_cast<double>(bytes_per_s_.load());  // 0: the link was taken away meanwhile
    std::chrono::duration<double> takes(rate > 0 ? static_cast<double>(num_bytes) / rate : 0);
    free_at_ = std::max(free_at_, put_at) + std::chrono::duration_cast<time_point::duration>(takes);
    return free_at_;
  }

 private:
  std::atomic<std::uint64_t> bytes_per_s_ = 0;
  time_point free_at_ = {};  ///< of the thread that sends
};

}  // namespace troupe::bench
