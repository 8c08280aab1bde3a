#pragma once
#include <mutex>
#include <string>
#include <thread>

namespace troupe::detail {

/// The collective call in which a process is, of a World and its Trainers. There is one at a time: a second
/// one would wait for the first, which waits for its callback. Thread-safe. This header is not installed.
class running_call {
 public:
  /// A call, from its construction to its destruction. `name` is a literal, as `Trainer::fit`. Throws
  /// std::logic_error while another call runs; the message names both, and the callback.
  class [[nodiscard]] scope {
   public:
    scope(running_call& call, const char* name);
    ~scope();
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

   private:
    running_call& call_;
  };

  /// A callback of the running call.
  class [[nodiscard]] callback {
   public:
    callback(running_call& call, const char* name);
    ~callback();
    callback(const callback&) = delete;
    callback& operator=(const callback&) = delete;

   private:
    running_call& call_;
  };

  /// Throws as scope does if `name` could not begin now.
  void require_none(const char* name) const;
  /// Throws as scope does if a callback of the running call makes this call, `name`.
  void require_no_callback(const char* name) const;
  /// "Trainer::fit", "the callback on_step of Trainer::fit", or empty if no call runs.
  std::string text() const;

 private:
  void require_none_locked(const char* name) const;
  std::string text_locked() const;

  mutable std::mutex mutex_;
  const char* call_ = nullptr;      ///< null: none
  const char* callback_ = nullptr;  ///< null: the call is in none
  std::thread::id callback_thread_;
};

}  // namespace troupe::detail
