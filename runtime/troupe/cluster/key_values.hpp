#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cluster {

/// The agent's key-value store and the requests that wait for keys. Values are never removed, only replaced;
/// the store lives as long as the job. Does no input or output.
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

  /// Stores a value. Returns why it was refused; empty: stored.
  std::string put(const std::string& key, bytes value);
  /// Null if the key has not been put.
  const bytes* find(const std::string& key) const;
  /// Registers a waiting request. Returns why it was refused; empty: registered.
  std::string wait(const std::string& key, const waiter& who);
  /// Removes and returns the requests that wait for `key`.
  std::vector<waiter> take_waiters(const std::string& key);
  void forget(const waiter& who);
  /// Removes all waiting requests of a lost process.
  void forget_all(int rank);

 private:
  std::map<std::string, bytes> values_;
  std::multimap<std::string, waiter> waiting_;
  std::map<int, std::size_t> num_waiting_;  ///< waiting requests of each rank; key: the rank
  std::size_t total_bytes_ = 0;
};

}  // namespace troupe::cluster
