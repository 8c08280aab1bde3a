#pragma once
#include <array>
#include <cstddef>
#include <span>

namespace troupe::messaging {

constexpr std::size_t authentication_code_bytes = 16;
using authentication_code = std::array<std::byte, authentication_code_bytes>;

/// Makes and checks authentication codes with a key drawn from the job's secret: SipHash-2-4 with
/// 16 bytes (Aumasson and Bernstein 2012, made for short messages). Immutable, so it may be shared by
/// threads.
class frame_authenticator {
 public:
  /// Throws std::invalid_argument if the secret has fewer than 16 bytes.
  explicit frame_authenticator(std::span<const std::byte> secret);

  authentication_code code(std::span<const std::byte> bytes) const;
  /// The code of two parts, which says where one ends and the other begins.
  authentication_code code(std::span<const std::byte> first, std::span<const std::byte> second) const;

 private:
  std::array<unsigned char, 32> key_;  ///< two keys: for one part and for two
};

/// Compares in a time that does not depend on where they differ.
bool same_code(std::span<const std::byte, authentication_code_bytes> left,
               std::span<const std::byte, authentication_code_bytes> right);

}  // namespace troupe::messaging
