#include "troupe/saved_weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

/// The reason, and what to name instead.
void check_refused(const fs::path& from, const std::string& reason) {
  INFO(from);
  CHECK_THROWS_MATCHES(read_weights(from), bad_input,
                       MessageMatches(ContainsSubstring(from.string()) && ContainsSubstring(reason)));
}

}  // namespace

TEST_CASE("weights of a folder without a snapshot are refused with what to name") {
  testing::temp_folder folder;
  check_refused(folder.path(), "there is no complete snapshot in the folder");
  check_refused(folder.path(), "Name a safetensors file, or the folder that a job's --snapshot-dir named");
}

TEST_CASE("weights of a folder whose snapshot is damaged are refused with what is wrong, then what to name") {
  testing::temp_folder folder;
  fs::create_directory(folder.path() / "step-000000000004");
  std::ofstream(folder.path() / "step-000000000004" / "manifest.json") << "{";
  check_refused(folder.path(), "can be used: the snapshot of step 4");
  check_refused(folder.path(), ". Name a safetensors file");
}

TEST_CASE("weights behind a path that cannot be followed are refused as bad input") {
  testing::temp_folder folder;
  auto loop = folder.path() / "loop";
  fs::create_symlink(loop, loop);
  check_refused(loop, "Too many levels of symbolic links");
  check_refused(folder.path() / "nowhere", "No such file");
}
