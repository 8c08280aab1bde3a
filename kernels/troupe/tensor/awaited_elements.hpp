#pragma once
#include <atomic>

namespace troupe {

/// Elements that are on their way to where tensors already lie: what the handles of tensor::awaiting wait for
/// whenever somebody asks where their elements are.
class awaited_elements {
 public:
  awaited_elements() = default;
  virtual ~awaited_elements() = default;
  awaited_elements(const awaited_elements&) = delete;
  awaited_elements& operator=(const awaited_elements&) = delete;

  /// Returns when the elements are there; throws what kept them from coming.
  void settle() {
    if (is_due_.load(std::memory_order_acquire)) bring();
  }
  /// From now on they are waited for, or no longer.
  void set_due(bool is_due) { is_due_.store(is_due, std::memory_order_release); }
  bool is_due() const { return is_due_.load(std::memory_order_acquire); }

 protected:
  /// Waits for them. Whoever writes them through such a handle says first that they are due no longer.
  virtual void bring() = 0;

 private:
  std::atomic<bool> is_due_ = false;
};

}  // namespace troupe
