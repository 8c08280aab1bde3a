#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "troupe/transport/transport.hpp"

namespace troupe::testing {

/// Keeps what a transport delivers until a test waits for it.
class event_recorder final : public transport::transport_events {
 public:
  struct control {
    int from = 0;
    std::uint64_t generation = 0;
    std::vector<std::byte> body;
  };
  struct arrived_tensor {
    int from = 0;
    transport::tensor_tag tag;
    tensor value;
  };
  struct peer_error {
    int rank = 0;
    std::string cause;
    std::uint64_t generation = 0;
  };

  using interceptor = std::function<bool(int from, const transport::tensor_tag& tag, const tensor& value)>;

  /// Called for every tensor from now on, on the delivering thread; it is kept only if that returns false.
  void intercept(interceptor callback) {
    std::lock_guard lock(mutex_);
    intercept_ = std::make_shared<const interceptor>(std::move(callback));
  }

  void on_control(int from, std::uint64_t generation, std::span<const std::byte> body) override {
    record(controls_, {from, generation, {body.begin(), body.end()}});
  }
  void on_tensor(int from, const transport::tensor_tag& tag, tensor value) override {
    auto callback = current_interceptor();
    if (callback && (*callback)(from, tag, value)) return;
    record(tensors_, {from, tag, std::move(value)});
  }
  void on_peer_error(int rank, std::uint64_t generation, const std::string& cause) override {
    record(errors_, {rank, cause, generation});
  }
  void on_tensor_lost(int rank, std::uint64_t generation, const std::string& cause) override {
    record(losses_, {rank, cause, generation});
  }

  /// The first `count` of what came and was not yet taken, in order of arrival.
  std::vector<control> take_controls(std::size_t count = 1) { return take(controls_, count); }
  std::vector<arrived_tensor> take_tensors(std::size_t count = 1) { return take(tensors_, count); }
  std::vector<peer_error> take_errors(std::size_t count = 1) { return take(errors_, count); }
  std::vector<peer_error> take_losses(std::size_t count = 1) { return take(losses_, count); }

  std::size_t error_count() {
    std::lock_guard lock(mutex_);
    return errors_.size();
  }
  bool has_errors_of(std::uint64_t generation) {
    std::lock_guard lock(mutex_);
    return std::ranges::any_of(errors_, [&](const auto& one) { return one.generation == generation; });
  }
  /// Wakes a wait_until whose condition depends on something else.
  void poke() {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  /// Sleeps until the condition, looked at after each event, holds. It must not call the recorder.
  void wait_until(const std::function<bool()>& condition) {
    std::unique_lock lock(mutex_);
    wait(lock, condition);
  }
  void wait_for_error(int rank) {
    std::unique_lock lock(mutex_);
    wait(lock,
         [&] { return std::ranges::any_of(errors_, [&](const auto& one) { return one.rank == rank; }); });
  }

 private:
  std::shared_ptr<const interceptor> current_interceptor() {
    std::lock_guard lock(mutex_);
    return intercept_;
  }
  template <class Event>
  void record(std::vector<Event>& list, Event event) {
    std::lock_guard lock(mutex_);
    list.push_back(std::move(event));
    changed_.notify_all();
  }
  template <class Event>
  std::vector<Event> take(std::vector<Event>& list, std::size_t count) {
    std::unique_lock lock(mutex_);
    wait(lock, [&] { return list.size() >= count; });
    auto end = list.begin() + static_cast<std::ptrdiff_t>(count);
    std::vector<Event> taken(std::make_move_iterator(list.begin()), std::make_move_iterator(end));
    list.erase(list.begin(), end);
    return taken;
  }
  void wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& condition) {
    if (!changed_.wait_for(lock, std::chrono::seconds(120), condition))
      throw std::runtime_error("what a test waited for did not happen");
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const interceptor> intercept_;
  std::vector<control> controls_;
  std::vector<arrived_tensor> tensors_;
  std::vector<peer_error> errors_, losses_;
};

}  // namespace troupe::testing
