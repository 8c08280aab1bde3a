#include "troupe/snapshot/block_file.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "support/temp_folder.hpp"

using namespace troupe;
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

  explicit one_file(std::vector<std::vector<std::byte>> blocks = {block_of(5, 1), block_of(3'000'000, 2)}) {
    blocks.emplace_back();
    written = write_blocks(path, [&](std::size_t number) { return blocks[number]; });
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
  one_file cut, replaced, other_version, missing;
  std::filesystem::resize_file(cut.path, 100);
  CHECK_THROWS_WITH(cut.read(), ContainsSubstring("it has 100 bytes"));
  replaced.overwrite(0, 'x');
  CHECK_THROWS_WITH(replaced.read(), ContainsSubstring("does not begin with TROUPEBL"));
  other_version.overwrite(8, 9);
  CHECK_THROWS_WITH(other_version.read(), ContainsSubstring("format version 9"));
  std::filesystem::remove(missing.path);
  CHECK_THROWS_WITH(missing.read(), ContainsSubstring("No such file"));
}

TEST_CASE("an intact block file with other content than expected is refused") {
  one_file made, other({block_of(5, 1), block_of(3'000'000, 3)});
  std::filesystem::copy_file(other.path, made.path, std::filesystem::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(made.read(), ContainsSubstring("damaged: checksum"));
}
