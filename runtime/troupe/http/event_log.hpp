#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace troupe::http {

/// The newest events of a server, numbered from 1, for any number of clients that each read at their own
/// pace as server-sent events (WHATWG HTML, 9.2). Memory is bounded, whatever clients do: a client that falls
/// behind, or comes back late, is told how many events it has missed. Thread-safe.
class event_log {
 public:
  /// Keeps at most so many events, of at most so many bytes together.
  explicit event_log(std::size_t max_events = 4096, std::size_t max_bytes = 1 << 20)
      : max_events_(max_events), max_bytes_(max_bytes) {}

  /// `type` and `data` are one line each; `data` is JSON.
  void append(std::string_view type, const std::string& data);

  struct piece {
    std::string text;           ///< empty: there is nothing newer
    std::uint64_t last_id = 0;  ///< of the newest event that the client has, or has missed
  };
  /// What comes after the event `id`, about `max_bytes` of it. Where events are no longer kept it begins with
  /// an event "dropped" with their number. An id that no event has yet is that of an earlier process: the
  /// client gets "restarted", and then all events that are kept.
  piece after(std::uint64_t id, std::size_t max_bytes) const;

  std::uint64_t newest_id() const;
  /// Called after each append, on its thread; null: no longer. When this returns, the earlier one is not
  /// running.
  void on_append(std::function<void()> call);

 private:
  struct entry {
    std::uint64_t id = 0;
    std::string text;
  };

  const std::size_t max_events_, max_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::deque<entry> events_;
  std::size_t size_bytes_ = 0;
  std::uint64_t newest_ = 0;

  std::mutex calling_;
  std::function<void()> call_;  ///< guarded by calling_
};

}  // namespace troupe::http
