#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "troupe/tensor/async_host_copy.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::actors::devices {

/// Sends tensors that a GPU computes, in the order in which they are given, on a thread of its own. Each is
/// copied to the memory of the CPU when it is computed, while the device goes on.
class outgoing_copies {
 public:
  using sender = std::function<void(int to_rank, const transport::tensor_tag& tag, tensor on_cpu)>;
  using failure_callback = std::function<void(const transport::tensor_tag& tag, std::exception_ptr cause)>;
  /// Both are called on the thread. After a failure nothing is sent any more until clear().
  outgoing_copies(sender send, failure_callback on_failure);
  outgoing_copies(const outgoing_copies&) = delete;
  outgoing_copies& operator=(const outgoing_copies&) = delete;
  ~outgoing_copies();

  /// What is queued for the elements by now comes before the copy. They must not change until it is made.
  void add(int to_rank, const transport::tensor_tag& tag, tensor value);
  /// Forgets what is not sent, and waits for what is being sent.
  void clear();

 private:
  struct outgoing {
    int to_rank = 0;
    transport::tensor_tag tag;
    async_host_copy value;
  };
  void run();
  void send_first(std::unique_lock<std::mutex>& lock);

  sender send_;
  failure_callback on_failure_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<outgoing> queue_;
  bool is_sending_ = false, has_failed_ = false, is_ending_ = false;
  std::thread thread_;  ///< last, since it uses the others
};

}  // namespace troupe::actors::devices
