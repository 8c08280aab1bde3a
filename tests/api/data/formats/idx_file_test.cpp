#include "troupe/data/formats/idx_file.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "idx_bytes.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe::testing;

namespace {

/// What reading a file of these bytes complains about; empty if nothing.
std::string complaint(const std::vector<std::uint8_t>& bytes, int rank,
                      decltype(write_plain)* write = write_plain) {
  temp_folder folder;
  auto file = folder.path() / "images";
  write(file, bytes);
  try {
    troupe::read_idx(file, rank);
  } catch (const troupe::bad_input& problem) {
    CHECK_THAT(problem.what(), ContainsSubstring(file.string()));
    return problem.what();
  }
  return {};
}

}  // namespace

TEST_CASE("plain and gzipped IDX files give the same elements") {
  temp_folder folder;
  auto bytes = idx_bytes({3, 2, 4}, counting(24));
  write_plain(folder.path() / "plain", bytes);
  write_gzipped(folder.path() / "packed", bytes);
  for (auto name : {"plain", "packed"}) {
    CHECK(troupe::read_idx_header(folder.path() / name, 3) == troupe::shape{3, 2, 4});
    auto read = troupe::read_idx(folder.path() / name, 3);
    CHECK(troupe::describe(read) == "u8[3, 2, 4]");
    CHECK(std::ranges::equal(read.values<std::uint8_t>(), counting(24)));
  }
}

TEST_CASE("all four bytes of an extent are read") {
  CHECK(complaint(idx_bytes({70000}, counting(70000)), 1).empty());
  CHECK(complaint(idx_bytes({70000}, counting(70000)), 1, write_gzipped).empty());
}

TEST_CASE("a missing file, or a folder in its place, is named") {
  temp_folder folder;
  CHECK_THROWS_WITH(troupe::read_idx(folder.path() / "none", 1),
                    ContainsSubstring("none") && ContainsSubstring("No such file"));
  CHECK_THROWS_AS(troupe::read_idx(folder.path(), 1), troupe::bad_input);
}

TEST_CASE("a wrong magic number is reported with the expected and the found bytes") {
  CHECK_THAT(complaint({}, 1), ContainsSubstring("is empty"));
  CHECK_THAT(complaint({'h', 'e', 'l', 'l', 'o'}, 3),
             ContainsSubstring("expected it to begin with 00 00 08 03, found 68 65 6c 6c"));
  CHECK_THAT(complaint({0, 0}, 3), ContainsSubstring("found 00 00"));
  CHECK_THAT(complaint(idx_bytes({2}, {1, 2}), 3),
             ContainsSubstring("with 3 extents") && ContainsSubstring("found 00 00 08 01"));
  CHECK_THAT(
      complaint({'B', 'Z', 'h', '9', '1'}, 1),
      ContainsSubstring("with 1 extent: ") && ContainsSubstring("a bzip2 file. Unpack it first: bunzip2"));
  CHECK_THAT(complaint({0x1f, 0x8b, 8, 0, 0}, 3, write_gzipped),
             ContainsSubstring("gunzip"));  // packed twice
  auto floats = idx_bytes({1}, counting(4));
  floats[2] = 0x0d;
  CHECK_THAT(complaint(floats, 1), ContainsSubstring("IDX file of unsigned bytes"));
}

TEST_CASE("truncated files show the sizes expected and found") {
  auto whole = idx_bytes({3, 2, 4}, counting(24));
  for (auto* write : {write_plain, write_gzipped}) {
    CHECK_THAT(complaint({whole.begin(), whole.end() - 1}, 3, write),
               ContainsSubstring("truncated") && ContainsSubstring("[3, 2, 4], 24 bytes") &&
                   ContainsSubstring("found 23"));
    CHECK_THAT(complaint({whole.begin(), whole.begin() + 10}, 3, write),
               ContainsSubstring("expected 12 bytes of extents, found 6"));
  }
}

TEST_CASE("bytes after the last element are refused") {
  auto bytes = idx_bytes({2, 2}, counting(5));
  CHECK_THAT(complaint(bytes, 2), ContainsSubstring("too long"));
  CHECK_THAT(complaint(bytes, 2, write_gzipped), ContainsSubstring("too long"));
}

TEST_CASE("a truncated or changed gzip stream is reported and never read") {
  temp_folder folder;
  auto file = folder.path() / "packed";
  write_gzipped(file, idx_bytes({100, 100}, counting(10000, 251)));
  auto size = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, size - 4);  // the end of the check sum and length
  CHECK_THROWS_WITH(troupe::read_idx(file, 2), ContainsSubstring("truncated: the gzip"));

  write_gzipped(file, idx_bytes({100, 100}, counting(10000, 251)));
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(size) - 8);  // the check sum
    stream.put('\x55');
  }
  CHECK_THROWS_WITH(troupe::read_idx(file, 2), ContainsSubstring("damaged"));
}

TEST_CASE("a file that is cut at any byte, or has bytes appended, is refused with its name") {
  temp_folder folder;
  auto bytes = idx_bytes({7, 11}, counting(77, 5));
  write_gzipped(folder.path() / "packed", bytes);
  std::ifstream packed_file(folder.path() / "packed", std::ios::binary);
  std::vector<std::uint8_t> packed{std::istreambuf_iterator<char>(packed_file), {}};
  REQUIRE(complaint(packed, 2).empty());
  for (const auto& whole : {bytes, packed}) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
      INFO(size << " of " << whole.size() << " bytes");
      CHECK_FALSE(complaint({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}, 2).empty());
    }
    for (std::size_t more = 1; more < 20; ++more) {
      auto longer = whole;
      longer.resize(whole.size() + more, 1);
      CHECK_FALSE(complaint(longer, 2).empty());
    }
  }
}

TEST_CASE("every bit of a gzip stream's trailer is checked") {
  temp_folder folder;
  write_gzipped(folder.path() / "packed", idx_bytes({7, 11}, counting(77, 5)));
  std::ifstream packed_file(folder.path() / "packed", std::ios::binary);
  std::vector<std::uint8_t> packed{std::istreambuf_iterator<char>(packed_file), {}};
  for (std::size_t bit = 0; bit < 64; ++bit) {
    auto changed = packed;
    changed[packed.size() - 8 + bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    CHECK_THAT(complaint(changed, 2), ContainsSubstring("damaged"));
  }
}

TEST_CASE("concatenated gzip streams are read as one file") {
  temp_folder folder;
  auto bytes = idx_bytes({7, 11}, counting(77));
  std::vector<std::uint8_t> joined;
  for (const auto& part :
       {std::vector(bytes.begin(), bytes.begin() + 30), std::vector(bytes.begin() + 30, bytes.end())}) {
    write_gzipped(folder.path() / "part", part);
    std::ifstream file(folder.path() / "part", std::ios::binary);
    joined.insert(joined.end(), std::istreambuf_iterator<char>(file), {});
  }
  write_plain(folder.path() / "joined", joined);
  auto read = troupe::read_idx(folder.path() / "joined", 2);
  CHECK(std::ranges::equal(read.values<std::uint8_t>(), counting(77)));
}

TEST_CASE("a header is checked against a plain file's size before the elements are read") {
  temp_folder folder;
  auto bytes = idx_bytes({7, 11}, counting(77));
  for (int change : {-1, 1}) {
    auto other = bytes;
    other.resize(bytes.size() + static_cast<std::size_t>(change));
    write_plain(folder.path() / "images", other);
    CHECK_THROWS_WITH(troupe::read_idx_header(folder.path() / "images", 2),
                      ContainsSubstring("images") && ContainsSubstring("expected [7, 11], 77 bytes") &&
                          ContainsSubstring("found " + std::to_string(77 + change)));
  }
}

TEST_CASE("impossible extents are refused before memory is reserved") {
  CHECK_THAT(complaint(idx_bytes({0, 28, 28}, {}), 3), ContainsSubstring("holds nothing"));
  CHECK_THAT(complaint(idx_bytes({0xffffffff, 0xffffffff, 0xffffffff}, {}), 3),
             ContainsSubstring("promises more than"));
  temp_folder folder;
  write_plain(folder.path() / "huge", idx_bytes({1u << 31}, counting(8)));
  CHECK_THROWS_AS(troupe::read_idx_header(folder.path() / "huge", 1), troupe::bad_input);
}

TEST_CASE("zeros after a gzip stream are padding, and nothing else may follow them") {
  temp_folder folder;
  write_gzipped(folder.path() / "packed", idx_bytes({7, 11}, counting(77, 5)));
  std::ifstream packed_file(folder.path() / "packed", std::ios::binary);
  const std::vector<std::uint8_t> packed{std::istreambuf_iterator<char>(packed_file), {}};
  // 1, a block of 512, and more than is read at once.
  for (std::size_t more : {1, 2, 3, 512, 700'000}) {
    CAPTURE(more);
    auto padded = packed;
    padded.resize(packed.size() + more);
    CHECK(complaint(padded, 2).empty());
    padded.push_back(7);
    CHECK_THAT(complaint(padded, 2), ContainsSubstring("goes on after the gzip stream's end"));
    padded.pop_back();
    padded.insert(padded.end(), packed.begin(), packed.end());
    CHECK_THAT(complaint(padded, 2), ContainsSubstring("goes on after the gzip stream's end"));
  }
}
