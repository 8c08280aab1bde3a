#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "troupe/wire/hex.hpp"

namespace troupe::files {

constexpr std::size_t checksum_bytes = 32;
using checksum = std::array<std::byte, checksum_bytes>;

/// BLAKE2b-256 (RFC 7693) of bytes given in pieces.
class running_checksum {
 public:
  running_checksum();
  ~running_checksum();
  running_checksum(const running_checksum&) = delete;
  running_checksum& operator=(const running_checksum&) = delete;
  void add(std::span<const std::byte> bytes);
  /// Ends it: nothing may be added afterwards.
  checksum result();
  /// That of the bytes so far; more may be added.
  checksum so_far() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// BLAKE2b-256 of `bytes`. Detects damage. It has no key, so it does not authenticate the writer.
/// `on_progress` is called about every 64 MiB.
checksum checksum_of(
    std::span<const std::byte> bytes, const std::function<void()>& on_progress = [] {});

}  // namespace troupe::files
