#include "troupe/random/philox.hpp"

#include <catch2/catch_test_macros.hpp>

using troupe::philox4x32;
using troupe::philox_counter;
using troupe::philox_stream;
using troupe::random_purpose;

// The known answers that Random123 publishes for philox4x32 with 10 rounds.
TEST_CASE("Philox4x32-10 gives the published answers") {
  CHECK(philox4x32({0, 0, 0, 0}, {0, 0}) == philox_counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        philox_counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        philox_counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a stream changes with seed, purpose, each word of the place, and the block") {
  auto reference = philox_stream(1, random_purpose::activations, {1, 2, 3}).block(4);
  CHECK(philox_stream(1, random_purpose::activations, {1, 2, 3}).block(4) == reference);
  CHECK(philox_stream(2, random_purpose::activations, {1, 2, 3}).block(4) != reference);
  CHECK(philox_stream(1 + (std::uint64_t{1} << 32), random_purpose::activations, {1, 2, 3}).block(4) !=
        reference);
  CHECK(philox_stream(1, random_purpose::permutation, {1, 2, 3}).block(4) != reference);
  CHECK(philox_stream(1, random_purpose::activations, {0, 2, 3}).block(4) != reference);
  CHECK(philox_stream(1, random_purpose::activations, {1, 0, 3}).block(4) != reference);
  CHECK(philox_stream(1, random_purpose::activations, {1, 2, 0}).block(4) != reference);
  CHECK(philox_stream(1, random_purpose::activations, {1, 2, 3}).block(5) != reference);
}

TEST_CASE("names hash by FNV-1a") {
  CHECK(troupe::hash_of_name("") == 0xcbf29ce484222325);
  CHECK(troupe::hash_of_name("a") == 0xaf63dc4c8601ec8c);
  CHECK(troupe::hash_of_name("foobar") == 0x85944171f73967e8);
}
