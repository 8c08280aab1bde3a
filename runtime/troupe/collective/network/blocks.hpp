#pragma once
#include "troupe/collective/network/conversation.hpp"

namespace troupe::network {

/// A share in pieces of at most network_sizes::block bytes.
class blocks {
 public:
  blocks(const conversation& at, const share& whole)
      : whole_(whole),
        longest_(
            std::max<std::int64_t>(1, static_cast<std::int64_t>(at.sizes().block / at.element_bytes()))) {}

  std::uint32_t count() const { return static_cast<std::uint32_t>((whole_.count + longest_ - 1) / longest_); }
  /// In elements.
  std::int64_t longest() const { return std::min(longest_, whole_.count); }
  share operator[](std::uint32_t block) const {
    auto first = block * longest_;
    return {whole_.first + first, std::min(longest_, whole_.count - first)};
  }

 private:
  share whole_;
  std::int64_t longest_;
};

}  // namespace troupe::network
