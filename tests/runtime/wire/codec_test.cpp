#include "troupe/wire/codec.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <random>

using Catch::Matchers::ContainsSubstring;

namespace {

enum class colour : std::uint8_t { red = 1, blue = 2 };

struct inner {
  double value = 0;
  std::vector<std::int64_t> numbers;
  bool operator==(const inner&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value, numbers);
  }
};

struct message {
  std::string text;
  std::uint32_t count = 0;
  bool flag = false;
  colour shade = colour::red;
  std::vector<inner> parts;
  std::vector<std::byte> payload;
  std::map<std::string, int> table;
  std::optional<float> maybe;
  bool operator==(const message&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(text), count, flag, shade, parts, payload, table, maybe);
  }
};

message sample() {
  return {"hello", 7, true, colour::blue, {{1.5, {1, -2, 3}}, {}}, {std::byte{9}}, {{"a", 1}, {"b", -2}},
          0.5F};
}

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

}  // namespace

TEST_CASE("a message is decoded as it was encoded") {
  CHECK(troupe::wire::decode<message>(troupe::wire::encode(sample())) == sample());
  CHECK(troupe::wire::decode<message>(troupe::wire::encode(message{})) == message{});
}

TEST_CASE("the encoding is little-endian, without padding or prefix") {
  CHECK(troupe::wire::encode(std::uint32_t{0x01020304}) == bytes_of({4, 3, 2, 1}));
  CHECK(troupe::wire::encode(std::string("ab")) == bytes_of({2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'}));
}

TEST_CASE("every truncation of a message is refused") {
  auto bytes = troupe::wire::encode(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_THROWS_AS(troupe::wire::decode<message>(std::span(bytes).first(length)),
                    troupe::wire::decode_error);
}

TEST_CASE("trailing bytes are refused") {
  auto bytes = troupe::wire::encode(sample());
  bytes.push_back(std::byte{0});
  CHECK_THROWS_WITH(troupe::wire::decode<message>(bytes), ContainsSubstring("trailing"));
}

TEST_CASE("a declared length beyond the message is refused before memory is allocated for it") {
  auto huge = bytes_of({0, 0, 0, 0, 0, 1, 0, 0, 'a'});  // 2^40 elements
  CHECK_THROWS_WITH(troupe::wire::decode<std::string>(huge), ContainsSubstring("more elements"));
  CHECK_THROWS_WITH(troupe::wire::decode<std::vector<double>>(huge), ContainsSubstring("more elements"));
  CHECK_THROWS_WITH(troupe::wire::decode<std::vector<inner>>(huge), ContainsSubstring("more elements"));
  CHECK_THROWS_WITH((troupe::wire::decode<std::map<int, int>>(huge)), ContainsSubstring("more elements"));
  auto largest = std::vector<std::byte>(16, std::byte{0xff});
  CHECK_THROWS_AS(troupe::wire::decode<std::vector<double>>(largest), troupe::wire::decode_error);
}

TEST_CASE("a truth value other than 0 and 1 is refused") {
  CHECK_THROWS_AS(troupe::wire::decode<bool>(bytes_of({2})), troupe::wire::decode_error);
}

TEST_CASE("arbitrary bytes either decode or give decode_error") {
  std::mt19937_64 random(20240901);
  auto valid = troupe::wire::encode(sample());
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    auto bytes = valid;
    for (auto flips = random() % 4 + 1; flips > 0; --flips)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % 8 == 0 ? random() % (bytes.size() + 1) : bytes.size());
    try {
      troupe::wire::decode<message>(bytes);
    } catch (const troupe::wire::decode_error&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}
