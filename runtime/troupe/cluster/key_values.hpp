#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// The agent's table of bytes by key, and who waits for which key. It lives as long as the job; nothing is
/// ever removed but by putting less in its place. Knows no sockets.
class key_values {
 public:
  static constexpr std::size_t max_key_bytes = 256;
  static constexpr std::size_t max_value_bytes = 32 << 10;
  /// Of all keys and values together.
  static constexpr std::size_t max_total_bytes = 64 << 20;
  /// Calls of one member that wait at the same time.
  static constexpr std::size_t max_waiting = 1024;

  using bytes = std::vector<std::byte>;
  /// One waiting call of one process.
  struct waiter {
    int rank = 0;
    std::uint32_t incarnation = 0;
    std::uint64_t request = 0;
    bool operator==(const waiter&) const = default;
  };

  /// Why it was not kept; empty: it was.
  std::string put(const std::string& key, bytes value);
  /// Null if nobody has put it.
  const bytes* find(const std::string& key) const;
  /// Why `who` may not wait; empty: it waits now.
  std::string wait(const std::string& key, const waiter& who);
  /// Those who waited for `key`, who do so no more.
  std::vector<waiter> take_waiters(const std::string& key);
  void forget(const waiter& who);
  /// Forgets all that a process that is gone waited for.
  void forget_all(int rank);

 private:
  std::map<std::string, bytes> values_;
  std::multimap<std::string, waiter> waiting_;
  std::map<int, std::size_t> num_waiting_;  ///< by rank
  std::size_t total_bytes_ = 0;
};

}  // namespace troupe
