#include "troupe/files/temporary_name.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "child_process.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"
#include "troupe/files/durable_file.hpp"

using namespace troupe;
using namespace troupe::files;

namespace {

/// The name that a process which has ended gave its file.
std::string name_of_ended_process() {
  testing::temp_folder folder;
  auto file = folder.path() / "name";
  testing::child_process([&] {
    std::ofstream(file) << temporary_name("stage-0000.part") << std::flush;
  }).wait_status();
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("only temporary files of ended processes of this host are abandoned") {
  auto dead = name_of_ended_process();
  REQUIRE(dead.starts_with(".stage-0000.part~"));
  CHECK(is_abandoned(dead));
  CHECK_FALSE(is_abandoned(temporary_name("stage-0000.part")));
  CHECK_FALSE(is_abandoned(dead + "elsewhere"));
  CHECK_FALSE(is_abandoned("stage-0000.part"));
  CHECK_FALSE(is_abandoned(".hidden"));
  CHECK_FALSE(is_abandoned(""));
}

TEST_CASE("a process with the reused id of an ended one does not keep its temporary files") {
  auto own = temporary_name("x");
  auto start = own.find('~') + 1;
  auto of_an_earlier_process = own.substr(0, start) + std::string("1") + own.substr(own.find('~', start));
  CHECK(is_abandoned(of_an_earlier_process));
}

TEST_CASE("a link under the name at which a file is written at first is replaced, and its target stays") {
  testing::temp_folder folder;
  auto precious = folder.path() / "precious", file = folder.path() / "weights";
  std::ofstream(precious) << "text";
  auto planted = folder.path() / temporary_name("weights");
  SECTION("a symbolic link") { std::filesystem::create_symlink(precious, planted); }
  SECTION("a hard link") { std::filesystem::create_hard_link(precious, planted); }
  std::array<std::byte, 2> bytes{};
  write_durably(file, bytes);
  CHECK(std::filesystem::file_size(file) == 2);
  CHECK(testing::text_of(precious) == "text");
}
