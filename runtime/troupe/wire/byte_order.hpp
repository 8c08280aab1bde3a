#pragma once
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

namespace troupe {

/// Appends numbers to `target`, little-endian whatever the host is. `target` must outlive it.
class byte_writer {
 public:
  explicit byte_writer(std::vector<std::byte>& target) : target_(target) {}

  template <std::unsigned_integral Number>
  void put(Number number) {
    for (std::size_t i = 0; i < sizeof(Number); ++i)
      target_.push_back(static_cast<std::byte>(number >> (8 * i)));
  }
  void put(std::span<const std::byte> bytes) { target_.insert(target_.end(), bytes.begin(), bytes.end()); }

 private:
  std::vector<std::byte>& target_;
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
    for (std::size_t i = 0; i < bytes.size(); ++i)
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

}  // namespace troupe
