#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "troupe/wire/hex.hpp"

namespace troupe {

constexpr std::size_t checksum_bytes = 32;
using checksum = std::array<std::byte, checksum_bytes>;

/// BLAKE2b-256 (RFC 7693) of bytes that come in pieces. One result for each object.
class running_checksum {
 public:
  running_checksum();
  ~running_checksum();
  running_checksum(const running_checksum&) = delete;
  running_checksum& operator=(const running_checksum&) = delete;
  void add(std::span<const std::byte> bytes);
  checksum result();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// BLAKE2b-256 of `bytes`. Finds damage; it has no key, so it proves nothing about who made them.
/// `on_progress` is called about every 64 MiB.
checksum checksum_of(
    std::span<const std::byte> bytes, const std::function<void()>& on_progress = [] {});

}  // namespace troupe
