#pragma once
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe::testing {

/// The base of the fake cuBLASLt and the fake cuDNN: counts calls and descriptors, and makes calls fail on
/// request. Thread-safe.
class fake_library {
 public:
  /// The call after `calls_before` more calls of `function` does nothing and returns `status`.
  void fail_call(std::string_view function, int status, int calls_before = 0);
  /// How often a function was called.
  int num_calls(std::string_view function) const;
  /// The number of descriptors and preferences that are not destroyed.
  int num_live() const;

  /// Counts a call. Returns the status that it must return: 0, or the status of fail_call().
  int on_call(std::string_view function);
  void on_create();
  void on_destroy();

 private:
  struct failure {
    int status, calls_before;
  };

  mutable std::mutex mutex_;
  std::map<std::string, int, std::less<>> calls_;
  std::map<std::string, failure, std::less<>> failures_;
  int num_live_ = 0;
};

}  // namespace troupe::testing
