#include "troupe/wire/packed_state.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <stdexcept>

#include "support/bits.hpp"

using namespace troupe;
using namespace troupe::wire;
using namespace troupe::testing;

namespace {

/// Sizes around the alignment, and an empty one.
std::vector<named_tensor> example() {
  return {{"weight", tensor::full({3}, 1.5f)},
          {"nothing", tensor::zeros({0})},
          {"aligned", tensor::full({16}, 2.5f)},
          {"bytes", tensor::zeros({65}, dtype::u8)}};
}

/// Packed into memory that was full of `filling` before.
tensor packed_over(std::byte filling) {
  packed_state_pool pool;
  auto size_bytes = pack_state(example(), pool).size_bytes();
  std::ranges::fill(pool.take(size_bytes).bytes(), filling);
  return pack_state(example(), pool);
}

}  // namespace

TEST_CASE("a state that was packed is unpacked to the same bits, names and order") {
  packed_state_pool pool;
  CHECK(same_bits(unpack_state(pack_state(example(), pool)), example()));
}

TEST_CASE("the packed bytes depend on the state only: the gaps between tensors are zero") {
  auto first = packed_over(std::byte{0xff}), second = packed_over(std::byte{0x5a});
  CHECK(std::ranges::equal(first.bytes(), second.bytes()));
  CHECK(same_bits(unpack_state(first), example()));
}

TEST_CASE("released memory is used again for a state of the same size") {
  packed_state_pool pool;
  auto* memory = pack_state(example(), pool).bytes().data();
  CHECK(pack_state(example(), pool).bytes().data() == memory);
}

TEST_CASE("what of whose tensors a state holds is packed with it, and others' contents are refused") {
  packed_state_pool pool;
  auto contents = whole_contents(example());
  CHECK(unpack_contents(pack_state(example(), pool)).contents == contents);
  contents[0].whole = {9};
  contents[0].boxes = {{{4}, {3}}};
  contents[2].whole = {8, 3};
  contents[2].boxes = {{{0, 0}, {8, 3}}};
  contents[2].begin = 5;
  contents[2].end = 21;
  contents[3].replica = 2;
  auto packed = pack_state(example(), contents, pool);
  CHECK(unpack_contents(packed).contents == contents);
  CHECK(same_bits(unpack_state(packed), example()));
  auto refused = [&](const auto& change) {
    auto changed = contents;
    change(changed);
    CHECK_THROWS_AS(pack_state(example(), changed, pool), std::invalid_argument);
  };
  refused([](auto& all) { all.pop_back(); });
  refused([](auto& all) { all.push_back(all.back()); });
  refused([](auto& all) { all[0].name = "another"; });
  refused([](auto& all) { all[0].type = dtype::i32; });
  refused([](auto& all) { all[0].boxes[0].extent = {2}; });
  refused([](auto& all) { all[2].end = 20; });
  refused([](auto& all) { all[0].boxes[0].offset = {7}; });
}

TEST_CASE("bytes that are no packed state are refused") {
  CHECK_THROWS_AS(unpack_state(tensor::zeros({3}, dtype::u8)), std::runtime_error);
  auto packed = packed_over(std::byte{0});
  packed.bytes()[7] = std::byte{0x7f};  // a table longer than everything
  CHECK_THROWS_AS(unpack_state(packed), std::runtime_error);
}

TEST_CASE("a packed state whose table lists what is no tensor is refused") {
  auto packed = packed_over(std::byte{0});
  // The table: its size, the number of entries, and the first one's name, dtype and extents.
  constexpr std::size_t name_begin = 8 + 8 + 8, dtype_begin = name_begin + 6;
  REQUIRE(std::memcmp(packed.bytes().data() + name_begin, "weight", 6) == 0);
  auto with = [&](std::size_t at, std::byte value) {
    auto changed = packed.clone();
    changed.bytes()[at] = value;
    return changed;
  };
  CHECK_THROWS_AS(unpack_state(with(dtype_begin, std::byte{99})), std::runtime_error);
  CHECK_THROWS_AS(unpack_state(with(dtype_begin + 1 + 8 + 7, std::byte{0xff})), std::runtime_error);
}
