#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe::messaging {

/// How the two ends of a connection prove to each other that they know the job's secret. The responder is the
/// end that was connected to:
///
///     responder -> initiator   greeting: protocol, responder's nonce
///     initiator -> responder   reply: initiator's nonce, initiator's proof
///     responder -> initiator   verdict: accepted with the responder's proof, or refused
///
/// A proof is a keyed BLAKE2b over the protocol, the prover's role and both nonces, so that neither a
/// recorded nor a reflected proof is of use, nor one of another protocol. Both ends derive one frame key per
/// direction in the same way. Nothing is encrypted.
using handshake_nonce = std::array<std::byte, 32>;
using handshake_proof = std::array<std::byte, 32>;
using frame_key = std::array<std::byte, 32>;

/// What is spoken after the handshake: seven letters, and a version that rises with each change.
struct handshake_protocol {
  std::array<char, 7> name;
  std::uint8_t version;
};
constexpr handshake_protocol agent_protocol = {{'T', 'R', 'O', 'U', 'P', 'E', 'C'}, 5};
constexpr handshake_protocol control_protocol = {{'T', 'R', 'O', 'U', 'P', 'E', 'R'}, 9};

constexpr std::size_t greeting_bytes = sizeof(handshake_protocol) + sizeof(handshake_nonce);
constexpr std::size_t reply_bytes = sizeof(handshake_nonce) + sizeof(handshake_proof);
constexpr std::size_t verdict_bytes = 1 + sizeof(handshake_proof);
constexpr std::byte verdict_accepted{'A'};
constexpr std::byte verdict_refused{'R'};

enum class handshake_role { initiator, responder };

handshake_nonce make_nonce();

/// One handshake's keyed functions. The secret may have any length from 16 bytes (std::invalid_argument below
/// that).
class handshake {
 public:
  handshake(std::span<const std::byte> secret, const handshake_protocol& protocol,
            const handshake_nonce& responder_nonce, const handshake_nonce& initiator_nonce);
  handshake_proof proof_of(handshake_role prover) const;
  /// In constant time.
  bool verify(handshake_role prover, std::span<const std::byte, sizeof(handshake_proof)> proof) const;
  /// The key of the frames that `sender` sends.
  frame_key key_of(handshake_role sender) const;

 private:
  std::array<std::byte, 32> keyed_hash(std::string_view label) const;

  std::array<std::byte, 32> key_;
  handshake_protocol protocol_;
  handshake_nonce responder_nonce_, initiator_nonce_;
};

/// The responder's end, for one connection. Not thread-safe.
class handshake_responder {
 public:
  /// `secret` must outlive it.
  handshake_responder(std::span<const std::byte> secret, const handshake_protocol& protocol)
      : secret_(secret), protocol_(protocol), nonce_(make_nonce()) {}

  std::array<std::byte, greeting_bytes> greeting() const;
  /// The keys of the connection if the reply proves knowledge of the secret.
  std::optional<handshake> check(std::span<const std::byte, reply_bytes> reply) const;
  /// `accepted`: what check() returned.
  static std::array<std::byte, verdict_bytes> verdict(const std::optional<handshake>& accepted);

 private:
  std::span<const std::byte> secret_;
  handshake_protocol protocol_;
  handshake_nonce nonce_;
};

/// What is wrong with a greeting, or nothing. A responder of another version is named by its version.
std::optional<std::string> greeting_fault(std::span<const std::byte, greeting_bytes> greeting,
                                          const handshake_protocol& expected);
/// The keys of the connection for the initiator, who has made `nonce` for it. `greeting` has no fault.
handshake answer_greeting(std::span<const std::byte, greeting_bytes> greeting,
                          std::span<const std::byte> secret, const handshake_protocol& protocol,
                          const handshake_nonce& nonce);
std::array<std::byte, reply_bytes> reply_of(const handshake& keys, const handshake_nonce& nonce);

}  // namespace troupe::messaging
