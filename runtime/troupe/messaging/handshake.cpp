#include "troupe/messaging/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <stdexcept>

#include "troupe/error/errors.hpp"

namespace troupe::messaging {
namespace {

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

void initialise_sodium() {
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
}

std::span<const std::byte> bytes_of(const handshake_protocol& protocol) {
  return std::as_bytes(std::span(&protocol, 1));
}

}  // namespace

handshake_nonce make_nonce() {
  initialise_sodium();
  handshake_nonce made;
  ::randombytes_buf(made.data(), made.size());
  return made;
}

handshake::handshake(std::span<const std::byte> secret, const handshake_protocol& protocol,
                     const handshake_nonce& responder_nonce, const handshake_nonce& initiator_nonce)
    : protocol_(protocol), responder_nonce_(responder_nonce), initiator_nonce_(initiator_nonce) {
  if (secret.size() < 16)
    throw_invalid("handshake", "a secret of at least 16 bytes", std::to_string(secret.size()) + " bytes");
  initialise_sodium();
  ::crypto_generichash(raw(key_.data()), key_.size(), raw(secret.data()), secret.size(), nullptr, 0);
}

std::array<std::byte, 32> handshake::keyed_hash(std::string_view label) const {
  ::crypto_generichash_state state;
  ::crypto_generichash_init(&state, raw(key_.data()), key_.size(), 32);
  auto protocol = bytes_of(protocol_);
  ::crypto_generichash_update(&state, raw(protocol.data()), protocol.size());
  ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(label.data()), label.size());
  ::crypto_generichash_update(&state, raw(responder_nonce_.data()), responder_nonce_.size());
  ::crypto_generichash_update(&state, raw(initiator_nonce_.data()), initiator_nonce_.size());
  std::array<std::byte, 32> made;
  ::crypto_generichash_final(&state, raw(made.data()), made.size());
  return made;
}

handshake_proof handshake::proof_of(handshake_role prover) const {
  return keyed_hash(prover == handshake_role::initiator ? "initiator's proof" : "responder's proof");
}

bool handshake::verify(handshake_role prover,
                       std::span<const std::byte, sizeof(handshake_proof)> proof) const {
  auto expected = proof_of(prover);
  return ::sodium_memcmp(expected.data(), proof.data(), expected.size()) == 0;
}

frame_key handshake::key_of(handshake_role sender) const {
  return keyed_hash(sender == handshake_role::initiator ? "initiator's frames" : "responder's frames");
}

std::array<std::byte, greeting_bytes> handshake_responder::greeting() const {
  std::array<std::byte, greeting_bytes> made;
  std::ranges::copy(nonce_, std::ranges::copy(bytes_of(protocol_), made.begin()).out);
  return made;
}

std::optional<handshake> handshake_responder::check(std::span<const std::byte, reply_bytes> reply) const {
  handshake_nonce theirs;
  std::ranges::copy(reply.first<sizeof theirs>(), theirs.begin());
  handshake keys(secret_, protocol_, nonce_, theirs);
  if (!keys.verify(handshake_role::initiator, reply.last<sizeof(handshake_proof)>())) return std::nullopt;
  return keys;
}

std::array<std::byte, verdict_bytes> handshake_responder::verdict(const std::optional<handshake>& accepted) {
  std::array<std::byte, verdict_bytes> made{accepted ? verdict_accepted : verdict_refused};
  if (accepted) std::ranges::copy(accepted->proof_of(handshake_role::responder), made.begin() + 1);
  return made;
}

std::optional<std::string> greeting_fault(std::span<const std::byte, greeting_bytes> greeting,
                                          const handshake_protocol& expected) {
  if (!std::ranges::equal(greeting.first<sizeof expected.name>(), std::as_bytes(std::span(expected.name))))
    return "the process that listens there does not speak the protocol " +
           std::string(expected.name.begin(), expected.name.end());
  auto version = std::to_integer<int>(greeting[sizeof expected.name]);
  if (version == expected.version) return std::nullopt;
  return "the process that listens there speaks version " + std::to_string(version) +
         " of the protocol, this process version " + std::to_string(expected.version) +
         ": start all processes of the job from the same build";
}

handshake answer_greeting(std::span<const std::byte, greeting_bytes> greeting,
                          std::span<const std::byte> secret, const handshake_protocol& protocol,
                          const handshake_nonce& nonce) {
  handshake_nonce theirs;
  std::ranges::copy(greeting.last<sizeof theirs>(), theirs.begin());
  return {secret, protocol, theirs, nonce};
}

std::array<std::byte, reply_bytes> reply_of(const handshake& keys, const handshake_nonce& nonce) {
  std::array<std::byte, reply_bytes> made;
  std::ranges::copy(keys.proof_of(handshake_role::initiator), std::ranges::copy(nonce, made.begin()).out);
  return made;
}

}  // namespace troupe::messaging
