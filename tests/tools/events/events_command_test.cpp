#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe::testing;

namespace {

/// `troupe events ARGUMENTS`
void check_refused(const std::string& arguments, const std::string& part) {
  CAPTURE(arguments);
  auto seen = run_in_shell(std::string(TROUPE_PROGRAM) + " events " + arguments);
  CHECK(seen.exit_code == 2);
  CHECK(seen.output.empty());
  CHECK_THAT(seen.errors, ContainsSubstring(part));
}

}  // namespace

TEST_CASE("files without events are refused with what was expected") {
  temp_folder folder;
  check_refused(
      "/nonexist",
      "cannot read /nonexist: No such file or directory. Expected a file events-RANK.INCARNATION.bin of "
      "`troupe launch --log-dir`");
  check_refused(folder.path().string(), "cannot read " + folder.path().string());
  auto file = (folder.path() / "events-0.0.bin").string();
  std::ofstream(file) << "no events";
  check_refused(file, "cannot read " + file);
}

TEST_CASE("options of troupe events are checked before a file is read") {
  check_refused("/nonexist --last -1", "--last: expected a whole number from 0 on, got '-1'");
  check_refused("/nonexist --trace --last", "--trace needs a value, got the option --last");
  check_refused("/nonexist --trace= --last", "--trace needs a value after the '=', got none");
}
