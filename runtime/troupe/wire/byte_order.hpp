#pragma once
#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>

namespace troupe::wire {

/// Writes numbers one after the other, little-endian whatever the host is. `target`, which must outlive it,
/// has room for all of them.
class byte_writer {
 public:
  explicit byte_writer(std::span<std::byte> target) : rest_(target) {}

  template <std::unsigned_integral Number>
  void put(Number number) {
    auto* at = take(sizeof(Number));
    for (std::size_t i = 0; i < sizeof(Number); ++i) at[i] = static_cast<std::byte>(number >> (8 * i));
  }
  void put(std::span<const std::byte> bytes) { std::ranges::copy(bytes, take(bytes.size())); }

 private:
  std::byte* take(std::size_t count) {
    auto* at = rest_.data();
    rest_ = rest_.subspan(count);
    return at;
  }
  std::span<std::byte> rest_;
};

/// The reverse. Reading past the end yields zeros (or no bytes) and makes `ok()` false for good, so that a
/// parser may read everything first and look once. The bytes must outlive it.
class byte_reader {
 public:
  explicit byte_reader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <std::unsigned_integral Number>
  Number get() {
    Number number = 0;
    auto bytes = take(sizeof(Number));
    if (bytes.empty()) return 0;
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      number = static_cast<Number>(number | (static_cast<Number>(bytes[i]) << (8 * i)));
    return number;
  }
  std::span<const std::byte> take(std::size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    auto head = rest_.first(count);
    rest_ = rest_.subspan(count);
    return head;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool ok_ = true;
};

}  // namespace troupe::wire
