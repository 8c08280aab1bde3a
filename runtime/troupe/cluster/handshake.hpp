#pragma once
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace troupe {

/// How the two ends of an agent connection prove to each other that they know the job's secret:
///
///     agent  -> client   greeting: magic, agent's nonce
///     client -> agent    reply: client's nonce, client's proof
///     agent  -> client   verdict: accepted with the agent's proof, or refused
///
/// A proof is a keyed BLAKE2b over the prover's role and both nonces, so that neither a recorded nor a
/// reflected proof is of use. Both ends derive one frame key per direction in the same way. Nothing is
/// encrypted.
using handshake_nonce = std::array<std::byte, 32>;
using handshake_proof = std::array<std::byte, 32>;
using frame_key = std::array<std::byte, 32>;

constexpr std::array<std::byte, 8> handshake_magic = {std::byte{'T'}, std::byte{'R'}, std::byte{'O'},
                                                      std::byte{'U'}, std::byte{'P'}, std::byte{'E'},
                                                      std::byte{'C'}, std::byte{1}};
constexpr std::size_t greeting_bytes = sizeof handshake_magic + sizeof(handshake_nonce);
constexpr std::size_t reply_bytes = sizeof(handshake_nonce) + sizeof(handshake_proof);
constexpr std::size_t verdict_bytes = 1 + sizeof(handshake_proof);
constexpr std::byte verdict_accepted{'A'};
constexpr std::byte verdict_refused{'R'};

enum class handshake_role { client, agent };

handshake_nonce make_nonce();

/// One handshake's keyed functions. The secret may have any length from 16 bytes (std::invalid_argument below
/// that).
class handshake {
 public:
  handshake(std::span<const std::byte> secret, const handshake_nonce& agent_nonce,
            const handshake_nonce& client_nonce);
  handshake_proof proof_of(handshake_role prover) const;
  /// In constant time.
  bool verify(handshake_role prover, std::span<const std::byte, sizeof(handshake_proof)> proof) const;
  /// The key of the frames that `sender` sends.
  frame_key key_of(handshake_role sender) const;

 private:
  std::array<std::byte, 32> keyed_hash(std::string_view label) const;

  std::array<std::byte, 32> key_;
  handshake_nonce agent_nonce_, client_nonce_;
};

}  // namespace troupe
