#include "troupe/transport/tensor_header.hpp"

#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <random>

namespace {

/// All that a header says.
struct tensor_header {
  troupe::transport::tensor_tag tag;
  troupe::transport::tensor_layout layout;
  troupe::transport::tensor_header_options options;
  bool operator==(const tensor_header&) const = default;
};

std::vector<std::byte> encode(const tensor_header& header) {
  const auto& [type, extents] = header.layout;
  std::vector<std::byte> bytes(troupe::transport::tensor_header_bytes(extents, header.options));
  troupe::wire::byte_writer writer(bytes);
  troupe::transport::write_tensor_header(header.tag, type, extents, header.options, writer);
  return bytes;
}

std::optional<tensor_header> decode(std::span<const std::byte> bytes, std::uint64_t body_bytes) {
  tensor_header header;
  auto read = troupe::transport::read_tensor_header(bytes, header.tag, header.options);
  auto layout = troupe::transport::decode_layout(read, body_bytes);
  if (read.empty() || !layout) return std::nullopt;
  header.layout = *layout;
  return header;
}

tensor_header full_header() {
  return {
      {1, 2, 3, 4, 5, troupe::transport::tensor_role::gathered, 6, 7, 8, 9},
      {troupe::dtype::i64, {2, 3}},
      {troupe::messaging::authentication_code{},
       troupe::transport::shared_place{troupe::transport::segment_report::holds_elements, 10, 11, 12, 13}}};
}

constexpr std::uint64_t sample_bytes = 48;
constexpr std::size_t role_at = 44, dtype_at = 45, rank_at = 46, first_extent_at = 47;

}  // namespace

TEST_CASE("a tensor header is decoded as it was encoded, with and without a code, with and without extents") {
  CHECK(decode(encode(full_header()), sample_bytes) == full_header());
  auto scalar = full_header();
  scalar.layout.extents = {};
  scalar.options = {};
  CHECK(decode(encode(scalar), 8) == scalar);
}

TEST_CASE("a tensor header that does not fit its body is refused") {
  CHECK_FALSE(decode(encode(full_header()), 47));
  CHECK_FALSE(decode(encode(full_header()), 6));
}

TEST_CASE("truncated, prolonged and impossible tensor headers are refused") {
  const auto valid = encode(full_header());
  for (std::size_t length = 0; length < valid.size(); ++length)
    CHECK_FALSE(decode(std::span(valid).first(length), sample_bytes));
  auto changed = valid;
  changed.push_back(std::byte{0});
  CHECK_FALSE(decode(changed, sample_bytes));
  for (auto at : {role_at, dtype_at, rank_at}) {
    changed = valid;
    changed[at] = std::byte{200};
    CHECK_FALSE(decode(changed, sample_bytes));
  }
  changed = valid;
  changed[role_at] = std::byte{3};  // of an earlier version
  CHECK_FALSE(decode(changed, sample_bytes));
  changed = valid;
  changed[first_extent_at + 7] = std::byte{0x80};  // a negative extent
  CHECK_FALSE(decode(changed, sample_bytes));
  changed[first_extent_at + 7] = std::byte{0x40};  // 2^62 rows of 3: overflows
  CHECK_FALSE(decode(changed, sample_bytes));
}

TEST_CASE("a size that overflows when multiplied by the element size is refused") {
  auto header = full_header();
  header.layout.extents = {1};
  auto bytes = encode(header);
  bytes[first_extent_at + 7] = std::byte{0x40};  // 2^62 + 1, times 8 bytes are 8 modulo 2^64
  CHECK_FALSE(decode(bytes, 8));
}

TEST_CASE("arbitrary bytes are refused or describe a tensor of the announced size") {
  std::mt19937_64 random(99);
  const auto valid = encode(full_header());
  for (int round = 0; round < 50000; ++round) {
    auto bytes = valid;
    for (auto changes = random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    auto header = decode(bytes, sample_bytes);
    if (!header) continue;
    auto elements = static_cast<std::size_t>(header->layout.extents.num_elements());
    REQUIRE(elements * size_bytes(header->layout.type) == sample_bytes);
  }
}
