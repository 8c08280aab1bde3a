#include "troupe/transport/tensor_header.hpp"

#include <catch2/catch_test_macros.hpp>
#include <random>

using troupe::decode_tensor_header;
using troupe::encode_tensor_header;

namespace {

troupe::tensor_header sample() {
  return {{1, 2, 3, 4, 5, troupe::tensor_role::parameter},
          troupe::dtype::i64,
          {2, 3},
          troupe::authentication_code{}};
}

constexpr std::uint64_t sample_bytes = 48;
constexpr std::size_t role_at = 28, dtype_at = 29, rank_at = 30, first_extent_at = 31;

}  // namespace

TEST_CASE("a tensor header survives the wire, with and without a code, with and without extents") {
  CHECK(decode_tensor_header(encode_tensor_header(sample()), sample_bytes) == sample());
  auto scalar = sample();
  scalar.extents = {};
  scalar.body_code.reset();
  CHECK(decode_tensor_header(encode_tensor_header(scalar), 8) == scalar);
}

TEST_CASE("a tensor header that does not fit its body is refused") {
  CHECK_FALSE(decode_tensor_header(encode_tensor_header(sample()), 47));
  CHECK_FALSE(decode_tensor_header(encode_tensor_header(sample()), 6));
}

TEST_CASE("truncated, prolonged and impossible tensor headers are refused") {
  const auto valid = encode_tensor_header(sample());
  for (std::size_t length = 0; length < valid.size(); ++length)
    CHECK_FALSE(decode_tensor_header(std::span(valid).first(length), sample_bytes));
  auto changed = valid;
  changed.push_back(std::byte{0});
  CHECK_FALSE(decode_tensor_header(changed, sample_bytes));
  for (auto at : {role_at, dtype_at, rank_at}) {
    changed = valid;
    changed[at] = std::byte{200};
    CHECK_FALSE(decode_tensor_header(changed, sample_bytes));
  }
  changed = valid;
  changed[first_extent_at + 7] = std::byte{0x80};  // a negative extent
  CHECK_FALSE(decode_tensor_header(changed, sample_bytes));
  changed[first_extent_at + 7] = std::byte{0x40};  // 2^62 rows of 3: overflows
  CHECK_FALSE(decode_tensor_header(changed, sample_bytes));
}

TEST_CASE("a size that overflows when multiplied by the element size is refused") {
  auto header = sample();
  header.extents = {std::int64_t{1} << 62};
  CHECK_FALSE(decode_tensor_header(encode_tensor_header(header), 0));
}

TEST_CASE("arbitrary bytes are refused or describe a tensor of the announced size") {
  std::mt19937_64 random(99);
  const auto valid = encode_tensor_header(sample());
  for (int round = 0; round < 50000; ++round) {
    auto bytes = valid;
    for (auto changes = random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    auto header = decode_tensor_header(bytes, sample_bytes);
    if (!header) continue;
    auto elements = static_cast<std::size_t>(header->extents.num_elements());
    REQUIRE(elements * size_bytes(header->type) == sample_bytes);
  }
}
