#pragma once
#include <deque>
#include <mutex>
#include <string>

#include "troupe/collective/call.hpp"

namespace troupe {

/// The last calls of one member in one group, for the report when one of them fails. Thread-safe.
class call_recorder {
 public:
  explicit call_recorder(std::size_t capacity = 64) : capacity_(capacity) {}

  void on_begin(const call& what);
  void on_end(const call& what);
  /// One line a call, oldest first: "#7 all_reduce(sum, f32[4]) done in 0.12 ms".
  std::string text() const;
  /// "waits in #8 barrier", "has finished #7 all_reduce(sum, f32[4])", "has called nothing yet"
  std::string last() const;

 private:
  struct entry {
    std::uint64_t sequence = 0;
    call_signature signature;
    int peer = -1;
    call::clock::time_point begun, ended;
    enum class phase : std::uint8_t { running, done, failed } is = phase::running;
  };
  static std::string describe(const entry& of);

  std::size_t capacity_;
  mutable std::mutex mutex_;
  std::deque<entry> entries_;
};

}  // namespace troupe
