#include "troupe/messaging/sealed_channel.hpp"

#include <sodium.h>

#include <array>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::messaging {
namespace {

using authentication_code = std::array<std::byte, sealed_channel::code_bytes>;

template <std::size_t Size>
std::array<unsigned char, Size> little_endian(std::uint64_t value) {
  std::array<unsigned char, Size> made;
  for (auto& byte : made) {
    byte = static_cast<unsigned char>(value);
    value >>= 8;
  }
  return made;
}

authentication_code code_of(const frame_key& key, std::uint64_t sequence, std::span<const std::byte> body) {
  auto numbers = little_endian<8>(sequence);
  auto length = little_endian<4>(body.size());
  ::crypto_generichash_state state;
  ::crypto_generichash_init(&state, reinterpret_cast<const unsigned char*>(key.data()), key.size(),
                            sealed_channel::code_bytes);
  ::crypto_generichash_update(&state, numbers.data(), numbers.size());
  ::crypto_generichash_update(&state, length.data(), length.size());
  ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(body.data()), body.size());
  authentication_code made;
  ::crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(made.data()), made.size());
  return made;
}

std::size_t length_at(const std::vector<std::byte>& received) {
  std::size_t length = 0;
  for (int i = 3; i >= 0; --i) length = length << 8 | std::to_integer<std::size_t>(received[i]);
  return length;
}

}  // namespace

sealed_channel::sealed_channel(handshake_role self, const handshake& keys)
    : sending_(keys.key_of(self)),
      receiving_(keys.key_of(self == handshake_role::initiator ? handshake_role::responder
                                                               : handshake_role::initiator)),
      max_sent_bytes_(self == handshake_role::initiator ? max_from_client : max_from_agent),
      max_received_bytes_(self == handshake_role::initiator ? max_from_agent : max_from_client) {}

void sealed_channel::seal(std::span<const std::byte> body, std::vector<std::byte>& out) {
  if (body.size() > max_sent_bytes_)
    throw_invalid("sealed_channel::seal", "at most " + std::to_string(max_sent_bytes_) + " bytes",
                  std::to_string(body.size()));
  auto length = little_endian<4>(body.size());
  auto code = code_of(sending_, sent_++, body);
  for (auto byte : length) out.push_back(std::byte{byte});
  out.insert(out.end(), code.begin(), code.end());
  out.insert(out.end(), body.begin(), body.end());
}

std::optional<std::vector<std::byte>> sealed_channel::open(std::vector<std::byte>& received) {
  if (received.size() < 4) return {};
  auto length = length_at(received);
  if (length > max_received_bytes_) throw bad_frame("a frame claims " + std::to_string(length) + " bytes");
  if (received.size() < header_bytes + length) return {};
  auto end = received.begin() + static_cast<std::ptrdiff_t>(header_bytes + length);
  std::vector<std::byte> body(received.begin() + header_bytes, end);
  auto code = code_of(receiving_, received_, body);
  if (::sodium_memcmp(code.data(), received.data() + 4, code.size()) != 0)
    throw bad_frame("a frame's authentication code is wrong");
  ++received_;
  received.erase(received.begin(), end);
  return body;
}

}  // namespace troupe::messaging
