#include "troupe/snapshot/part/part.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string_view>

#include "example_parts.hpp"
#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/snapshot/part/part_header.hpp"
#include "troupe/snapshot/part/part_reader.hpp"
#include "troupe/wire/codec.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;
using troupe::testing::decode_part;
using troupe::testing::example_part;
using troupe::testing::same_bits;
using troupe::testing::same_tensors;
using troupe::testing::temp_folder;

namespace {

using byte_vector = std::vector<std::byte>;

byte_vector encoded(const snapshot_part& part) {
  auto bytes = encode_part(part);
  return {bytes.bytes().begin(), bytes.bytes().end()};
}

/// A part with this header and these elements whose lengths and checksum are right: what damage cannot make,
/// but malice can.
byte_vector forged(const byte_vector& header, std::size_t elements_bytes, std::uint32_t version = 2) {
  auto begin = (32 + header.size() + 63) / 64 * 64;
  byte_vector bytes(begin + elements_bytes);
  std::uint64_t lengths[] = {header.size(), elements_bytes};
  std::memcpy(bytes.data(), "TROUPEPT", 8);
  std::memcpy(bytes.data() + 8, &version, 4);
  std::memcpy(bytes.data() + 16, lengths, 16);
  std::ranges::copy(header, bytes.begin() + 32);
  std::ranges::copy(files::checksum_of(bytes), std::back_inserter(bytes));
  return bytes;
}

/// What version 1 wrote: stage 2 of 4 after 120 steps, with "2.bias" (1.5, -2) and "steps" (9).
constexpr std::string_view version_1_part =
    "54524f5550455054010000000000000052000000000000008000000000000000050000006a6f622d3778000000000000"
    "000200000004000000030000000000000004000000617678320200000006000000322e62696173000100000002000000"
    "00000000050000007374657073030000000000000000000000000000000000000000c03f000000c00000000000000000"
    "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "090000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000c72550537c5ca0bf6a27ea0da017474ca5fa22c0f38574a1956c63b8424cf1ca";

}  // namespace

TEST_CASE("a part of format version 1 is read as that of its stage, with whole tensors") {
  auto bytes = wire::from_hex(version_1_part).value();
  auto part = decode_part(bytes);
  CHECK(part.job_id == "job-7");
  CHECK(part.step == 120);
  CHECK(part.part == layout::part_id{{.stage = 2}});
  CHECK(part.num_stages == 4);
  CHECK(part.generation == 3);
  CHECK(part.numeric_class == "avx2");
  CHECK(same_tensors(part.tensors, {{"2.bias", tensor::from(std::vector<float>{1.5F, -2}, {2})},
                                    {"steps", tensor::from(std::vector<std::int64_t>{9}, {})}}));
  CHECK(part.contents == whole_contents(part.tensors));
  CHECK(part_reader(source_in(bytes)).header().contents == part.contents);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto bad = bytes;
    bad[at] ^= std::byte{1} << (at % 8);
    CHECK_THROWS_AS(decode_part(bad), files::snapshot_error);
  }
}

TEST_CASE("a part says which elements of its tensors it has") {
  auto part = example_part(1, 0, 1);
  part.part = {{0, 1, 2}, 3};
  part.contents = whole_contents(part.tensors);
  part.contents[0].whole = {10, 20};
  part.contents[0].boxes = {{{5, 10}, {5, 10}}, {{0, 0}, {10, 6}}};
  part.contents[0].begin = 7;
  part.contents[0].end = 107;
  part.contents[0].replica = 1;
  auto back = decode_part(encode_part(part).bytes());
  CHECK(back.part == part.part);
  CHECK(back.contents == part.contents);
  part.contents[0].end = 108;
  CHECK_THROWS_WITH(encode_part(part), ContainsSubstring("f32[100]") && ContainsSubstring("f32[101]"));
  part.contents[0].end = 111;
  CHECK_THROWS_WITH(encode_part(part), ContainsSubstring("not among the 110"));
  part.contents.pop_back();
  CHECK_THROWS_WITH(encode_part(part), ContainsSubstring("contents of 3 tensors"));
}

TEST_CASE("a part is decoded as it was encoded") {
  auto part = example_part(120, 2, 4);
  auto floats = part.tensors[0].value.values<float>();
  floats[0] = std::numeric_limits<float>::quiet_NaN();
  floats[1] = -0.0F;
  part.tensors.push_back({"bytes", tensor::from(std::vector<std::uint8_t>{1, 2, 3}, {3, 1})});
  auto back = decode_part(encode_part(part).bytes());
  CHECK(back.job_id == "job-7");
  CHECK(back.step == 120);
  CHECK(back.part == layout::part_id{{2}});
  CHECK(back.num_stages == 4);
  CHECK(back.generation == 3);
  CHECK(back.numeric_class == "avx2");
  CHECK(same_tensors(back.tensors, part.tensors));
}

TEST_CASE("a part without tensors and with unusual names is decoded as it was encoded") {
  snapshot_part part;
  part.job_id = std::string("a\0b\xff", 4);
  auto back = decode_part(encode_part(part).bytes());
  CHECK(back.job_id == part.job_id);
  CHECK(back.tensors.empty());
}

TEST_CASE("the same part gives the same bytes, and elements lie at multiples of 64") {
  auto part = example_part(5, 0, 1, 3);
  auto first = encode_part(part);
  CHECK(std::ranges::equal(first.bytes(), encode_part(part).bytes()));
  auto bytes = first.bytes();
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data() + 16, 8);
  auto begin = (32 + header_bytes + 63) / 64 * 64;
  CHECK(std::memcmp(bytes.data() + begin, part.tensors[0].value.bytes().data(), 12) == 0);
  CHECK(std::memcmp(bytes.data() + begin + 64, part.tensors[1].value.bytes().data(), 8) == 0);
}

TEST_CASE("decoded tensors outlive the bytes they came from") {
  auto bytes = encoded(example_part(9, 0, 1));
  auto back = decode_part(bytes);
  std::ranges::fill(bytes, std::byte{0xee});
  CHECK(same_tensors(back.tensors, example_part(9, 0, 1).tensors));
}

TEST_CASE("an invalid part is refused at encoding") {
  auto part = example_part(1, 0, 1);
  part.tensors.push_back({"hole", {}});
  CHECK_THROWS_WITH(encode_part(part), ContainsSubstring("hole"));
  part.tensors.back() = {"adam.step", tensor::zeros({1})};
  CHECK_THROWS_WITH(encode_part(part), ContainsSubstring("adam.step") && ContainsSubstring("twice"));
}

TEST_CASE("every flipped bit of a part is found") {
  auto good = encoded(example_part(7, 1, 2, 5));
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto bad = good;
    bad[at] ^= std::byte{1} << (at % 8);
    CHECK_THROWS_AS(decode_part(bad), files::snapshot_error);
  }
}

TEST_CASE("a part of format version 2, with one checksum for all, is read") {
  part_header header;
  header.step = 9;
  header.tensors.values = {{{"w"}, 0, {{16}}, {{{{{0}}, {{16}}}}}, 0, 16, -1}};
  auto bytes = forged(wire::encode(header), 64, 2);
  CHECK(decode_part(bytes).step == 9);
  CHECK(same_tensors(decode_part(bytes).tensors, {{"w", tensor::zeros({16})}}));
  bytes[bytes.size() - 50] ^= std::byte{1};
  CHECK_THROWS_WITH(decode_part(bytes), ContainsSubstring("checksum"));
}

TEST_CASE("of a part only the blocks are read and checked that hold what is wanted") {
  constexpr std::int64_t num_elements = 40 << 20;  // 160 MiB: three blocks
  snapshot_part part;
  part.tensors.push_back({"first", tensor::full({5}, 1)});
  auto large = tensor::empty({num_elements});
  auto values = large.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  part.tensors.push_back({"large", large});
  part.tensors.push_back({"last", tensor::full({3}, 7)});
  temp_folder folder;
  auto file = folder.path() / "part";
  {
    auto bytes = encode_part(part);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.bytes().data()),
               static_cast<std::streamsize>(bytes.size_bytes()));
  }
  auto size = std::filesystem::file_size(file);
  int num_blocks = 0;
  auto opened = [&] {
    num_blocks = 0;
    return part_reader(source_in(file, size), [&] { ++num_blocks; });
  };
  auto read = [](part_reader& reader, std::int64_t first, std::size_t count) {
    std::vector<float> found(count);
    reader.read(1, first, std::as_writable_bytes(std::span(found)));
    return found;
  };
  auto expected = [&](std::int64_t first, std::size_t count) {
    auto begin = values.begin() + first;
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  std::int64_t in_second = 20 << 20, before_third = (32 << 20) - 20;
  auto reader = opened();
  CHECK(num_blocks == 0);
  CHECK(read(reader, in_second, 100) == expected(in_second, 100));
  CHECK(read(reader, in_second + 5000, 100) == expected(in_second + 5000, 100));
  CHECK(num_blocks == 1);
  CHECK(read(reader, before_third, 40) == expected(before_third, 40));
  CHECK(num_blocks == 2);
  CHECK(same_bits(reader.read(2).value, part.tensors[2].value));
  CHECK(num_blocks == 2);
  CHECK(same_bits(reader.read(1).value, large));
  {
    std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(static_cast<std::streamoff>(part_block_bytes * 2 + 4096));
    damaged.put('!');
  }
  auto again = opened();
  CHECK(read(again, in_second, 100) == expected(in_second, 100));
  CHECK_THROWS_WITH(again.read(2), ContainsSubstring("checksum"));
  CHECK_THROWS_WITH(again.check(), ContainsSubstring("checksum"));
}

TEST_CASE("every truncation of a part is found") {
  auto good = encoded(example_part(7, 1, 2, 5));
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_THROWS_WITH(decode_part(std::span(good).first(size)),
                      ContainsSubstring("truncated") && ContainsSubstring(std::to_string(size)));
}

TEST_CASE("every extension of a part is found") {
  auto good = encoded(example_part(7, 1, 2, 5));
  for (std::size_t extra = 1; extra <= 130; ++extra) {
    auto bad = good;
    bad.resize(good.size() + extra, static_cast<std::byte>(extra));
    CHECK_THROWS_WITH(decode_part(bad), ContainsSubstring(std::to_string(bad.size())));
  }
}

TEST_CASE("random damage of a part is found") {
  std::mt19937_64 random(20240607);
  auto good = encoded(example_part(7, 1, 2, 50));
  for (int round = 0; round < 3000; ++round) {
    auto bad = good;
    for (auto count = random() % 8 + 1; count > 0; --count)
      bad[random() % bad.size()] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bad.resize(random() % (bad.size() + 200));
    if (bad == good) continue;
    CHECK_THROWS_AS(decode_part(bad), files::snapshot_error);
  }
}

TEST_CASE("the error of a damaged part names the damage") {
  auto good = encoded(example_part(7, 1, 2));
  auto changed = [&](std::size_t at) {
    auto bad = good;
    bad[at] ^= std::byte{0x40};
    return bad;
  };
  CHECK_THROWS_WITH(decode_part(changed(0)), ContainsSubstring("not a snapshot part"));
  CHECK_THROWS_WITH(decode_part(changed(8)), ContainsSubstring("format version 67"));
  CHECK_THROWS_WITH(decode_part(changed(23)), ContainsSubstring("its lengths exceed"));
  CHECK_THROWS_WITH(decode_part(changed(31)), ContainsSubstring("its lengths exceed"));
  CHECK_THROWS_WITH(decode_part(changed(200)), ContainsSubstring("checksum"));
  CHECK_THROWS_WITH(decode_part(changed(good.size() - 1)), ContainsSubstring("checksum"));
  CHECK_THROWS_WITH(decode_part({}), ContainsSubstring("truncated"));
}

TEST_CASE("a false header with a valid checksum is refused") {
  auto with_tensor = [](const whole_tensor_entry& entry) {
    part_header_1 header;
    header.tensors.values = {entry};
    return wire::encode(header);
  };
  auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(decode_part(forged(with_tensor({{"w"}, 0, {{16}}}), 64, 1)).tensors.size() == 1);
  CHECK_THROWS_WITH(decode_part(forged(with_tensor({{"w"}, 0, {{17}}}), 64, 1)),
                    ContainsSubstring("does not fit"));
  CHECK_THROWS_WITH(decode_part(forged(with_tensor({{"w"}, 3, {{std::int64_t{1} << 58}}}), 64, 1)),
                    ContainsSubstring("does not fit"));
  CHECK_THROWS_AS(decode_part(forged(with_tensor({{"w"}, 3, {{most}}}), 64, 1)), files::snapshot_error);
  CHECK_THROWS_AS(decode_part(forged(with_tensor({{"w"}, 0, {{most, most}}}), 64, 1)), files::snapshot_error);
  CHECK_THROWS_AS(decode_part(forged(with_tensor({{"w"}, 0, {{-1}}}), 64, 1)), files::snapshot_error);
  CHECK_THROWS_WITH(decode_part(forged(with_tensor({{"w"}, 200, {{1}}}), 64, 1)), ContainsSubstring("200"));
  CHECK_THROWS_WITH(decode_part(forged(with_tensor({{"w"}, 0, {{16}}}), 128, 1)),
                    ContainsSubstring("no tensor"));
  CHECK_THROWS_WITH(decode_part(forged(with_tensor({{"w"}, 0, {{8}}}), 32, 1)), ContainsSubstring("padded"));
}

TEST_CASE("a false box in a header with a valid checksum is refused") {
  auto with_box = [](const box_entry& box, std::int64_t begin, std::int64_t end) {
    part_header header;
    header.tensors.values = {{{"w"}, 0, {{16}}, {{box}}, begin, end, -1}};
    return forged(wire::encode(header), 64);
  };
  auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(decode_part(with_box({{{0}}, {{16}}}, 0, 16)).tensors.size() == 1);
  CHECK_THROWS_WITH(decode_part(with_box({{{1}}, {{16}}}, 0, 16)), ContainsSubstring("not inside"));
  CHECK_THROWS_WITH(decode_part(with_box({{{0, 0}}, {{16}}}, 0, 16)), ContainsSubstring("not inside"));
  CHECK_THROWS_WITH(decode_part(with_box({{{0}}, {{16}}}, 0, most)), ContainsSubstring("not among"));
  CHECK_THROWS_WITH(decode_part(with_box({{{0}}, {{16}}}, -1, 2)), ContainsSubstring("not among"));
}

TEST_CASE("a part that lists a tensor twice is refused") {
  part_header header;
  tensor_entry entry{{"w"}, 0, {{16}}, {{{{{0}}, {{16}}}}}, 0, 16, -1};
  header.tensors.values = {entry};
  CHECK(decode_part(forged(wire::encode(header), 64)).tensors.size() == 1);
  header.tensors.values.push_back(entry);
  CHECK_THROWS_WITH(decode_part(forged(wire::encode(header), 128)), ContainsSubstring("'w' twice"));
}

TEST_CASE("a header with false counts allocates no memory") {
  auto header = wire::encode(part_header());
  for (std::size_t at = 0; at + 4 <= header.size(); ++at) {
    auto bad = header;
    std::ranges::fill(std::span(bad).subspan(at, 4), std::byte{0xff});
    try {
      decode_part(forged(bad, 0));  // some fields may be anything
    } catch (const files::snapshot_error&) {
    }
  }
  auto endless = header;
  std::ranges::fill(std::span(endless).last(4), std::byte{0xff});
  CHECK_THROWS_WITH(decode_part(forged(endless, 0)), ContainsSubstring("damaged header"));
}
