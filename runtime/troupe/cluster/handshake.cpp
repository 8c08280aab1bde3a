#include "troupe/cluster/handshake.hpp"

#include <sodium.h>

#include <stdexcept>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

void initialise_sodium() {
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
}

}  // namespace

handshake_nonce make_nonce() {
  initialise_sodium();
  handshake_nonce made;
  ::randombytes_buf(made.data(), made.size());
  return made;
}

handshake::handshake(std::span<const std::byte> secret, const handshake_nonce& agent_nonce,
                     const handshake_nonce& client_nonce)
    : agent_nonce_(agent_nonce), client_nonce_(client_nonce) {
  if (secret.size() < 16)
    throw_invalid("handshake", "a secret of at least 16 bytes", std::to_string(secret.size()) + " bytes");
  initialise_sodium();
  ::crypto_generichash(raw(key_.data()), key_.size(), raw(secret.data()), secret.size(), nullptr, 0);
}

std::array<std::byte, 32> handshake::keyed_hash(std::string_view label) const {
  ::crypto_generichash_state state;
  ::crypto_generichash_init(&state, raw(key_.data()), key_.size(), 32);
  ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(label.data()), label.size());
  ::crypto_generichash_update(&state, raw(agent_nonce_.data()), agent_nonce_.size());
  ::crypto_generichash_update(&state, raw(client_nonce_.data()), client_nonce_.size());
  std::array<std::byte, 32> made;
  ::crypto_generichash_final(&state, raw(made.data()), made.size());
  return made;
}

handshake_proof handshake::proof_of(handshake_role prover) const {
  return keyed_hash(prover == handshake_role::client ? "troupe client proof" : "troupe agent proof");
}

bool handshake::verify(handshake_role prover,
                       std::span<const std::byte, sizeof(handshake_proof)> proof) const {
  auto expected = proof_of(prover);
  return ::sodium_memcmp(expected.data(), proof.data(), expected.size()) == 0;
}

frame_key handshake::key_of(handshake_role sender) const {
  return keyed_hash(sender == handshake_role::client ? "troupe client frames" : "troupe agent frames");
}

}  // namespace troupe
