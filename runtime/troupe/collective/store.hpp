#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Where the processes of a job leave bytes for each other by name: groups begin with it. Thread-safe.
class store {
 public:
  virtual ~store() = default;
  /// Replaces what was there.
  virtual void put(const std::string& key, std::span<const std::byte> value) = 0;
  /// Waits for somebody to put it; nothing if nobody has within `timeout`.
  virtual std::optional<std::vector<std::byte>> get(const std::string& key,
                                                    std::chrono::milliseconds timeout) = 0;
  /// Throws when it is known that somebody who would put something here is gone: for those who wait for
  /// anything else meanwhile.
  virtual void check() const {}
};

}  // namespace troupe
