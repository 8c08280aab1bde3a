#pragma once
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace troupe::transport {

/// Admits each sequence number of a connection once. Numbers may arrive out of order, but one that is older
/// than the newest by `size` or more is refused. (The anti-replay window of RFC 4303, section 3.4.3.)
class replay_window {
 public:
  static constexpr std::uint64_t size = 1024;

  bool admit(std::uint64_t sequence) {
    if (sequence >= end_) {
      advance(sequence + 1);
    } else if (end_ - sequence > size || seen_[place_of(sequence)]) {
      return false;
    }
    seen_.set(place_of(sequence));
    return true;
  }

 private:
  static std::size_t place_of(std::uint64_t sequence) { return static_cast<std::size_t>(sequence % size); }
  void advance(std::uint64_t end) {
    if (end - end_ >= size) seen_.reset();
    for (; end_ < end && end - end_ < size; ++end_) seen_.reset(place_of(end_));
    end_ = end;
  }

  std::uint64_t end_ = 0;  ///< one more than the newest
  std::bitset<size> seen_;
};

}  // namespace troupe::transport
