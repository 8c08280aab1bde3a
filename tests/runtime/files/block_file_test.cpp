#include "troupe/files/block_file.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include "child_process.hpp"
#include "mounted_tmpfs.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::files;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<std::byte> block_of(std::size_t size_bytes, int value) {
  return std::vector<std::byte>(size_bytes, static_cast<std::byte>(value));
}

struct one_file {
  temp_folder folder;
  std::filesystem::path path = folder.path() / "blocks";
  written_blocks written;

  explicit one_file(const std::vector<std::vector<std::byte>>& blocks = {block_of(5, 1),
                                                                         block_of(3'000'000, 2)}) {
    block_file_writer writer;
    written = writer.write(path, blocks.size(), [&](std::size_t number) { return blocks[number]; });
  }
  std::vector<std::vector<std::byte>> read() const {
    std::vector<std::vector<std::byte>> blocks;
    read_blocks(path, written, [&](auto block) { blocks.emplace_back(block.begin(), block.end()); });
    return blocks;
  }
  void overwrite(std::uint64_t at, char value) const {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(at)).put(value);
  }
};

/// Files of blocks of `block_bytes` each, written by one writer.
struct growing_files {
  temp_folder folder;
  block_file_writer writer;
  std::size_t block_bytes = 7;
  std::size_t num_asked = 0;
  std::function<void(std::size_t number)> at_block = [](std::size_t) {};

  written_blocks write(const std::filesystem::path& file, std::size_t num_blocks) {
    return writer.write(file, num_blocks, [this](std::size_t number) {
      at_block(number);
      ++num_asked;
      return block_of(block_bytes, static_cast<int>(number));
    });
  }
  std::filesystem::path path(const std::string& name) const { return folder.path() / name; }
  /// The file has exactly these blocks, of which the beginning is checked.
  void check(const std::filesystem::path& file, const written_blocks& written, std::size_t num_blocks) const {
    std::size_t number = 0;
    read_blocks(file, written, [&](auto block) {
      auto expected = block_of(block_bytes, static_cast<int>(number++));
      REQUIRE(std::ranges::equal(block, expected));
    });
    CHECK(number == num_blocks);
  }
};

}  // namespace

TEST_CASE("blocks are read back in order, and their file has the returned size") {
  one_file two, none(std::vector<std::vector<std::byte>>{});
  CHECK(two.read() == std::vector{block_of(5, 1), block_of(3'000'000, 2)});
  CHECK(none.read().empty());
  CHECK(std::filesystem::file_size(two.path) == two.written.size_bytes);
  CHECK_NOTHROW(check_blocks(two.path, two.written));
}

TEST_CASE("a block file with a changed byte anywhere gives no block") {
  one_file made({block_of(5, 1), block_of(7, 2)});
  for (std::uint64_t at = 0; at < made.written.size_bytes; ++at) {
    one_file again({block_of(5, 1), block_of(7, 2)});
    again.overwrite(at, 'x');
    bool has_given = false;
    CHECK_THROWS_AS(read_blocks(again.path, again.written, [&](auto) { has_given = true; }), snapshot_error);
    CHECK_FALSE(has_given);
  }
}

TEST_CASE("the error of a block file names what is wrong") {
  one_file cut, replaced, other_version, earlier_version, missing;
  std::filesystem::resize_file(cut.path, 100);
  CHECK_THROWS_WITH(cut.read(), ContainsSubstring("it has 100 bytes, of which 3000029 are to be read"));
  replaced.overwrite(0, 'x');
  CHECK_THROWS_WITH(replaced.read(), ContainsSubstring("does not begin with TROUPEBL"));
  other_version.overwrite(8, 9);
  CHECK_THROWS_WITH(other_version.read(), ContainsSubstring("format version 9"));
  earlier_version.overwrite(8, 1);
  CHECK_THROWS_WITH(earlier_version.read(),
                    ContainsSubstring("format version 1, but this program reads version 2"));
  std::filesystem::remove(missing.path);
  CHECK_THROWS_WITH(missing.read(), ContainsSubstring("No such file"));
}

TEST_CASE("an intact block file with other content than expected is refused") {
  one_file made, other({block_of(5, 1), block_of(3'000'000, 3)});
  std::filesystem::copy_file(other.path, made.path, std::filesystem::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(made.read(), ContainsSubstring("damaged: checksum"));
}

TEST_CASE("a file with more blocks is the previous one with the new ones appended") {
  growing_files made;
  auto none = made.write(made.path("none"), 0);
  auto some = made.write(made.path("some"), 3);
  auto many = made.write(made.path("many"), 10);
  auto same = made.write(made.path("same"), 10);
  CHECK(made.num_asked == 10);
  CHECK(std::filesystem::equivalent(made.path("none"), made.path("same")));
  made.check(made.path("none"), none, 0);
  made.check(made.path("some"), some, 3);
  made.check(made.path("many"), many, 10);
  made.check(made.path("same"), same, 10);
  one_file at_once({block_of(7, 0), block_of(7, 1), block_of(7, 2)});
  CHECK(at_once.written.sum == some.sum);  // however many were written at a time
}

TEST_CASE("what follows the blocks that are meant is not read, and a missing byte of them is found") {
  growing_files made;
  auto written = made.write(made.path("one"), 3);
  std::ofstream(made.path("one"), std::ios::app) << "torn";
  made.check(made.path("one"), written, 3);
  std::filesystem::resize_file(made.path("one"), written.size_bytes - 1);
  CHECK_THROWS_WITH(check_blocks(made.path("one"), written), ContainsSubstring("it has 48 bytes"));
  written.size_bytes -= 1;
  CHECK_THROWS_WITH(check_blocks(made.path("one"), written), ContainsSubstring("damaged: checksum"));
}

TEST_CASE("a size that ends within a block is found although the checksum is right") {
  growing_files made;
  made.write(made.path("one"), 3);
  auto written = made.write(made.path("one"), 3);
  running_checksum sum;
  std::vector<char> bytes(written.size_bytes - 1);
  std::ifstream(made.path("one")).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  sum.add(std::as_bytes(std::span(bytes)));
  written_blocks cut{bytes.size(), sum.result()};
  CHECK_THROWS_WITH(made.check(made.path("one"), cut, 3), ContainsSubstring("does not fit"));
}

TEST_CASE("a file may be written again under its own name and under one that another file has") {
  growing_files made;
  auto first = made.write(made.path("first"), 2);
  auto again = made.write(made.path("first"), 5);
  CHECK(made.num_asked == 5);
  made.check(made.path("first"), first, 2);
  made.check(made.path("first"), again, 5);
  std::ofstream(made.path("other")) << "something else";
  auto other = made.write(made.path("other"), 6);
  made.check(made.path("other"), other, 6);
  CHECK(made.num_asked == 6);
  CHECK(std::distance(std::filesystem::directory_iterator(made.folder.path()), {}) == 2);
}

TEST_CASE("a writer begins a new file if the previous one is gone or not as the writer left it") {
  growing_files made;
  auto first = made.write(made.path("first"), 3);
  SECTION("removed") { std::filesystem::remove(made.path("first")); }
  SECTION("longer") { std::ofstream(made.path("first"), std::ios::app) << "torn"; }
  SECTION("shorter") { std::filesystem::resize_file(made.path("first"), first.size_bytes - 1); }
  SECTION("replaced by a copy") {
    std::filesystem::copy_file(made.path("first"), made.path("copy"));
    std::filesystem::rename(made.path("copy"), made.path("first"));
  }
  SECTION("with more blocks than are wanted") { made.write(made.path("first"), 8); }
  made.num_asked = 0;
  auto second = made.write(made.path("second"), 5);
  CHECK(made.num_asked == 5);
  CHECK(made.writer.link_problem().empty());
  made.check(made.path("second"), second, 5);
  made.write(made.path("third"), 6);
  CHECK(made.num_asked == 6);
}

TEST_CASE("a block that cannot be had leaves earlier files as they are, and the next one has all blocks") {
  growing_files made;
  auto first = made.write(made.path("first"), 3);
  made.block_bytes = 700'000;
  made.at_block = [](std::size_t number) {
    if (number == 7) throw std::runtime_error("no such block");
  };
  CHECK_THROWS_WITH(made.write(made.path("second"), 10), "no such block");
  CHECK_THROWS_WITH(made.write(made.path("first"), 10), "no such block");
  made.at_block = [](std::size_t) {};
  CHECK(std::distance(std::filesystem::directory_iterator(made.folder.path()), {}) == 1);
  made.num_asked = 0;
  auto third = made.write(made.path("third"), 10);
  CHECK(made.num_asked == 10);
  made.check(made.path("third"), third, 10);
  made.block_bytes = 7;
  made.check(made.path("first"), first, 3);
  made.block_bytes = 0;
  CHECK_THROWS_AS(made.write(made.path("fourth"), 11), std::invalid_argument);
}

TEST_CASE("a writer killed while it appends leaves the previous file valid, and no new one") {
  growing_files made;
  made.block_bytes = 700'000;
  auto first = made.write(made.path("first"), 3);
  CHECK(signal_that_ended([&] {
          made.at_block = [](std::size_t number) {
            if (number == 7) ::kill(::getpid(), SIGKILL);
          };
          made.write(made.path("second"), 10);
        }) == SIGKILL);
  CHECK(std::filesystem::file_size(made.path("first")) > first.size_bytes);  // torn
  CHECK_FALSE(std::filesystem::exists(made.path("second")));
  made.check(made.path("first"), first, 3);
  made.num_asked = 0;
  auto second = made.write(made.path("second"), 4);
  CHECK(made.num_asked == 4);  // the torn bytes are not continued
  made.check(made.path("second"), second, 4);
}

TEST_CASE("where no hard link can be made, each file is written as a whole, and the writer says why") {
  mounted_tmpfs disk("1m");
  growing_files made;
  auto first = made.write(made.path("first"), 3);
  auto second = made.write(disk.path() / "second", 5);
  CHECK(made.num_asked == 8);
  CHECK_THAT(made.writer.link_problem(),
             ContainsSubstring("cannot make the hard link") && ContainsSubstring("cross-device"));
  made.check(made.path("first"), first, 3);
  made.check(disk.path() / "second", second, 5);
  made.write(disk.path() / "third", 6);
  CHECK(made.num_asked == 9);
  CHECK(made.writer.link_problem().empty());
}
