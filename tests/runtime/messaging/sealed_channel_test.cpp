#include "troupe/messaging/sealed_channel.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <stdexcept>

using namespace troupe;
using namespace troupe::messaging;

namespace {

using bytes = std::vector<std::byte>;

bytes text(std::string_view letters) {
  bytes made;
  for (char letter : letters) made.push_back(std::byte(letter));
  return made;
}

struct two_ends {
  handshake keys{bytes(16, std::byte{7}), agent_protocol, {}, {}};
  sealed_channel here{handshake_role::initiator, keys}, there{handshake_role::responder, keys};
};

}  // namespace

TEST_CASE("frames arrive complete and in order, however the bytes are split") {
  two_ends ends;
  bytes sent, received;
  ends.here.seal(text("first"), sent);
  ends.here.seal(text(""), sent);
  ends.here.seal(text("third"), sent);
  std::vector<bytes> bodies;
  for (auto byte : sent) {
    received.push_back(byte);
    while (auto body = ends.there.open(received)) bodies.push_back(*body);
  }
  CHECK(bodies == std::vector{text("first"), text(""), text("third")});
  CHECK(received.empty());
}

TEST_CASE("a frame with any bit changed is refused") {
  two_ends ends;
  bytes sent;
  ends.here.seal(text("abc"), sent);
  auto position = GENERATE(range(4, 23));
  sent[position] ^= std::byte{1};
  CHECK_THROWS_AS(ends.there.open(sent), bad_frame);
}

TEST_CASE("repeated, swapped and reflected frames are refused") {
  two_ends ends;
  bytes first, second;
  ends.here.seal(text("first"), first);
  ends.here.seal(text("second"), second);
  SECTION("repeated") {
    auto copy = first;
    CHECK(ends.there.open(first));
    CHECK_THROWS_AS(ends.there.open(copy), bad_frame);
  }
  SECTION("swapped") { CHECK_THROWS_AS(ends.there.open(second), bad_frame); }
  SECTION("reflected") { CHECK_THROWS_AS(ends.here.open(first), bad_frame); }
}

TEST_CASE("a length over the limit is refused before its bytes arrive, and never sent") {
  two_ends ends;
  bytes huge = {std::byte{0xff}, std::byte{0xff}, std::byte{0xff}, std::byte{0x7f}};
  CHECK_THROWS_AS(ends.there.open(huge), bad_frame);
  bytes out;
  CHECK_THROWS_AS(ends.here.seal(bytes(sealed_channel::max_from_client + 1), out), std::invalid_argument);
  CHECK(out.empty());
}

TEST_CASE("proofs and keys depend on secret, nonces and role") {
  bytes secret(16, std::byte{7}), other(16, std::byte{8});
  auto agent = make_nonce(), client = make_nonce();
  CHECK(agent != client);
  handshake mine(secret, agent_protocol, agent, client);
  CHECK(mine.verify(handshake_role::initiator,
                    handshake(secret, agent_protocol, agent, client).proof_of(handshake_role::initiator)));
  CHECK_FALSE(mine.verify(handshake_role::initiator, mine.proof_of(handshake_role::responder)));
  CHECK_FALSE(
      mine.verify(handshake_role::initiator,
                  handshake(other, agent_protocol, agent, client).proof_of(handshake_role::initiator)));
  CHECK_FALSE(
      mine.verify(handshake_role::initiator,
                  handshake(secret, agent_protocol, client, agent).proof_of(handshake_role::initiator)));
  CHECK(mine.key_of(handshake_role::initiator) != mine.key_of(handshake_role::responder));
  CHECK(mine.key_of(handshake_role::initiator) !=
        handshake(secret, agent_protocol, client, agent).key_of(handshake_role::initiator));
  CHECK_THROWS_AS(handshake(bytes(15), agent_protocol, agent, client), std::invalid_argument);
}
