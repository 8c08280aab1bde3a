#pragma once
#include <coroutine>
#include <exception>
#include <utility>

namespace troupe::collective {

/// What an algorithm waits for.
class condition {
 public:
  virtual bool holds() = 0;

 protected:
  ~condition() = default;
};

/// The algorithm of a collective call, as a coroutine that waits with `co_await until(...)`. It runs on the
/// thread that calls advance(), and never blocks it.
///
///     algorithm barrier(shm_call call) {
///       call.post_inline(nothing);
///       co_await until([&] { return call.all_arrived(); });
///     }
///
/// Arguments taken by reference must outlive it. Movable. Destroying it ends it where it waits.
class [[nodiscard]] algorithm {
 public:
  struct promise_type {
    condition* waits_for = nullptr;
    std::exception_ptr error;

    algorithm get_return_object() { return algorithm(handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  algorithm(algorithm&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  algorithm& operator=(algorithm&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~algorithm() {
    if (handle_) handle_.destroy();
  }

  /// Continues if what it waits for holds. Returns whether the algorithm is done. Rethrows what it threw.
  bool advance() {
    auto& promise = handle_.promise();
    while (!handle_.done()) {
      if (promise.waits_for && !promise.waits_for->holds()) return false;
      promise.waits_for = nullptr;
      handle_.resume();
    }
    if (promise.error) std::rethrow_exception(promise.error);
    return true;
  }

 private:
  using handle = std::coroutine_handle<promise_type>;
  explicit algorithm(handle coroutine) : handle_(coroutine) {}
  handle handle_;
};

/// Waits until `holds()` returns true. What it throws is thrown by advance().
template <class Predicate>
class until final : public condition {
 public:
  explicit until(Predicate holds) : holds_(std::move(holds)) {}
  bool holds() override { return holds_(); }

  bool await_ready() { return holds_(); }
  void await_suspend(std::coroutine_handle<algorithm::promise_type> waiting) {
    waiting.promise().waits_for = this;
  }
  void await_resume() {}

 private:
  Predicate holds_;
};

/// Waits for another algorithm as part of this one.
inline auto finished(algorithm& part) {
  return until([&part] { return part.advance(); });
}

}  // namespace troupe::collective
