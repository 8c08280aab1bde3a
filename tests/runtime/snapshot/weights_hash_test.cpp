#include "troupe/snapshot/weights_hash.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

using Catch::Matchers::ContainsSubstring;
using namespace troupe;

TEST_CASE("a hash goes on in another process from its state, and has the same bits") {
  auto first = tensor::full({37}, 1), second = tensor::full({70'000}, 2);
  snapshot::weights_hasher here;
  here.add(first);
  snapshot::weights_hasher there(here.state());
  there.add(second);
  CHECK(there.hex() == weights_sha256({{"a", first}, {"b", second}}));
  CHECK(here.hex() == weights_sha256({{"a", first}}));
  CHECK_THROWS_WITH(snapshot::weights_hasher(std::vector<std::byte>(3)), ContainsSubstring("got 3"));
}

TEST_CASE("the hash is that of the elements in name order") {
  // printf '\x01\x02\x03' | sha256sum
  auto expected = "039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81";
  named_tensor first{"10.weight", tensor::from(std::vector<std::uint8_t>{1, 2}, {2})};
  named_tensor second{"2.bias", tensor::from(std::vector<std::uint8_t>{3}, {1})};
  CHECK(weights_sha256({first, second}) == expected);
  CHECK(weights_sha256({second, first}) == expected);
  // SHA-256 of nothing (FIPS 180-4).
  CHECK(weights_sha256({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_CASE("floats are hashed as little-endian bits") {
  CHECK(weights_sha256({{"w", tensor::full({1}, 1)}}) ==
        weights_sha256({{"w", tensor::from(std::vector<std::uint8_t>{0, 0, 0x80, 0x3f}, {4})}}));
  CHECK(weights_sha256({{"w", tensor::full({1}, 0.0F)}}) !=
        weights_sha256({{"w", tensor::full({1}, -0.0F)}}));
}

TEST_CASE("a hash over a name that occurs twice or over nothing is refused") {
  auto one = tensor::full({1}, 1);
  CHECK_THROWS_WITH(weights_sha256({{"w", one}, {"b", one}, {"w", one}}), ContainsSubstring("'w' twice"));
  CHECK_THROWS_WITH(weights_sha256({{"w", {}}}), ContainsSubstring("undefined"));
}
