#include "inspect/lost_processes.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "inspect/screen/draw.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/trace/process_events.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A forward of `step` that ends at so many milliseconds.
trace::trace_event forward(std::int64_t end_ms, std::uint64_t step) {
  return {end_ms * 1'000'000 - 1000, end_ms * 1'000'000, 1, step, 0, 0, trace::trace_kind::forward};
}

std::string refusal_of_folder(const std::filesystem::path& folder) {
  try {
    snapshot_of_lost_processes(folder);
  } catch (const bad_input& problem) {
    return problem.what();
  }
  return {};
}

}  // namespace

TEST_CASE("what lost processes did last is shown in the views of a job") {
  temp_folder folder;
  trace::process_events first{.rank = 1, .pid = 17}, second{.rank = 2, .incarnation = 3, .pid = 18};
  first.threads = {{"device 1", 1, false, 2, {forward(100, 6), forward(200, 7)}}, {"loader", 2, true, 0, {}}};
  second.threads = {{"device 2", 1, false, 1, {forward(150, 8)}}};
  write_events(first, folder.path() / "events-1.0.bin");
  write_events(second, folder.path() / "events-2.3.bin");
  auto lost = snapshot_of_lost_processes(folder.path());
  CHECK(lost.at_ms == 200);
  REQUIRE(lost.rows("actors").size() == 5);
  CHECK(lost.rows("actors")[1]["id"] == "1#0/device 1");
  CHECK_THAT(text_in(lost.rows("actors")[1], "does"), ContainsSubstring("step 7"));
  CHECK(lost.rows("actors")[2]["state"] == "ended");
  const auto& lines = lost.part("log")["lines"];
  REQUIRE(lines.size() == 3);
  CHECK_THAT(text_in(lines[1], "text"), ContainsSubstring("2#3/device 2: F") && ContainsSubstring("step 8"));
  std::string text;
  for (const auto& row : draw_all(lost, 80)) text += row.text + "\n";
  CHECK_THAT(text,
             ContainsSubstring("the last events of lost processes") && ContainsSubstring("1#0/device 1"));
}

TEST_CASE("a folder without what lost processes leave, or with damaged files, is refused") {
  temp_folder folder;
  CHECK_THAT(refusal_of_folder(folder.path()), ContainsSubstring("events-RANK.I.bin"));
  std::ofstream(folder.path() / "events-1.0.bin") << "nonsense";
  CHECK(!refusal_of_folder(folder.path()).empty());
}
