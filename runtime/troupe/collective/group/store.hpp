#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A key-value store that the processes of a job share: the rendezvous of groups. Thread-safe.
class store {
 public:
  virtual ~store() = default;
  /// Replaces the value of the key.
  virtual void put(const std::string& key, std::span<const std::byte> value) = 0;
  /// Waits until some process has put the key. Nothing if none has within `timeout`.
  virtual std::optional<std::vector<std::byte>> get(const std::string& key,
                                                    std::chrono::milliseconds timeout) = 0;
  /// Throws if it is known that a process that would put a key is lost. For callers that wait for other
  /// things meanwhile.
  virtual void check() const {}
};

}  // namespace troupe
