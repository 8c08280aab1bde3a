#pragma once
#include <array>
#include <cstddef>
#include <span>

namespace troupe {

constexpr std::size_t authentication_code_bytes = 16;
using authentication_code = std::array<std::byte, authentication_code_bytes>;

/// Makes and checks authentication codes with a key drawn from the job's secret: keyed BLAKE2b, 16 bytes.
/// Immutable, so it may be shared by threads.
class frame_authenticator {
 public:
  /// Throws std::invalid_argument if the secret has fewer than 16 bytes.
  explicit frame_authenticator(std::span<const std::byte> secret);

  /// The code of the two parts one after the other.
  authentication_code code(std::span<const std::byte> first, std::span<const std::byte> second = {}) const;

 private:
  std::array<unsigned char, 32> key_;
};

/// Compares in a time that does not depend on where they differ.
bool same_code(std::span<const std::byte, authentication_code_bytes> left,
               std::span<const std::byte, authentication_code_bytes> right);

}  // namespace troupe
