#include "troupe/messaging/authenticator.hpp"

#include <sodium.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe::messaging {
namespace {

constexpr std::size_t shortest_secret_bytes = 16;
/// Keeps this use of the secret apart from every other one.
constexpr std::string_view purpose = "troupe frame authentication 2";

const unsigned char* raw(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

constexpr std::size_t siphash_key_bytes = crypto_shorthash_siphashx24_KEYBYTES;

authentication_code siphash(std::span<const std::byte> bytes, const unsigned char* key) {
  static_assert(authentication_code_bytes == crypto_shorthash_siphashx24_BYTES);
  authentication_code result;
  crypto_shorthash_siphashx24(reinterpret_cast<unsigned char*>(result.data()), raw(bytes), bytes.size(), key);
  return result;
}

}  // namespace

frame_authenticator::frame_authenticator(std::span<const std::byte> secret) {
  if (secret.size() < shortest_secret_bytes)
    throw_invalid("frame_authenticator", "a secret of at least 16 bytes",
                  std::to_string(secret.size()) + " bytes");
  if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  crypto_generichash_state state;
  crypto_generichash_init(&state, nullptr, 0, key_.size());
  crypto_generichash_update(&state, raw(std::as_bytes(std::span(purpose))), purpose.size());
  crypto_generichash_update(&state, raw(secret), secret.size());
  crypto_generichash_final(&state, key_.data(), key_.size());
}

authentication_code frame_authenticator::code(std::span<const std::byte> bytes) const {
  return siphash(bytes, key_.data());
}

/// Another key than for one part alone, so that no part can pass for two.
authentication_code frame_authenticator::code(std::span<const std::byte> first,
                                              std::span<const std::byte> second) const {
  auto code_of_second = code(second);
  std::vector<std::byte> both(first.begin(), first.end());
  both.insert(both.end(), code_of_second.begin(), code_of_second.end());
  return siphash(both, key_.data() + siphash_key_bytes);
}

bool same_code(std::span<const std::byte, authentication_code_bytes> left,
               std::span<const std::byte, authentication_code_bytes> right) {
  std::array<std::uint64_t, 2> a, b;
  static_assert(sizeof a == authentication_code_bytes);
  std::memcpy(a.data(), left.data(), sizeof a);
  std::memcpy(b.data(), right.data(), sizeof b);
  return ((a[0] ^ b[0]) | (a[1] ^ b[1])) == 0;
}

}  // namespace troupe::messaging
