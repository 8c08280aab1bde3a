// Loops with early stopping whose processes are all lost, and that resume: each evaluation and decision is
// what it was in a job without losses.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <sstream>
#include <string>

#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

struct layout {
  int processes = 1;
  words options = {};
};

words launch_options(const layout& of, int max_restarts) {
  return of.processes == 1 ? words{} : words{"--max-restarts", std::to_string(max_restarts)};
}

process_result run_loop(const layout& of, const std::filesystem::path& best, const words& options,
                        int max_restarts = 3) {
  return run_process(
      worker_job(of.processes, join(join({VALIDATION_PROGRAM, "--best", best.string()}, of.options), options),
                 launch_options(of, max_restarts)));
}

/// Its lines, without the rank that the launcher puts before each.
words lines_of(const process_result& result) {
  words lines;
  std::istringstream output(result.output);
  for (std::string line; std::getline(output, line);)
    lines.push_back(line.starts_with('[') ? line.substr(line.find(' ') + 1) : line);
  return lines;
}

bool ends_with(const words& all, const words& last) {
  return last.size() <= all.size() && std::equal(last.rbegin(), last.rend(), all.rbegin());
}

}  // namespace

TEST_CASE("a loop with early stopping that resumes decides as one without losses", "[resumed_calls]") {
  auto of = GENERATE(layout{1, {"--devices", "2"}}, layout{2, {"--stages", "2"}},
                     layout{4, {"--stages", "4"}}, layout{4, {"--stages", "2", "--replicas", "2"}});
  auto lost_at = GENERATE(20, 35);
  temp_folder folder;
  auto unbroken = run_loop(of, folder.path() / "unbroken", {});
  CAPTURE(unbroken.errors);
  REQUIRE(unbroken.exit_code == 0);
  auto expected = lines_of(unbroken);
  REQUIRE(expected.size() > 6);

  auto best = folder.path() / "best";
  words in_folder{"--snapshot-dir", (folder.path() / "snapshots").string(), "--disk-every", "3"};
  auto lost =
      run_loop(of, best, join(in_folder, {"--fault", kill_at("apply", of.processes - 1, lost_at)}), 0);
  REQUIRE(lost.exit_code != 0);
  // Once more while it resumes: of this one another process goes on.
  in_folder.emplace_back("--resume");
  if (of.processes > 1) in_folder = join(in_folder, {"--fault", kill_at("apply", 0, lost_at + 5)});
  auto resumed = run_loop(of, best, in_folder);
  INFO(lost.output << lost.errors << resumed.output << resumed.errors);
  REQUIRE(resumed.exit_code == 0);
  auto lines = lines_of(resumed);
  CHECK(ends_with(expected, lines));
  CHECK(lines.size() < expected.size());
  CHECK_THAT(resumed.errors, !ContainsSubstring("is not what the job that wrote the snapshot did"));
  CHECK(text_of(best) == text_of(folder.path() / "unbroken"));
}

TEST_CASE("a loop that resumes with another number of stages decides as before", "[resumed_calls]") {
  temp_folder folder;
  layout two{2, {"--stages", "2"}}, four{4, {"--stages", "4"}};
  auto expected = lines_of(run_loop(two, folder.path() / "unbroken", {}));
  words in_folder{"--snapshot-dir", (folder.path() / "snapshots").string(), "--disk-every", "3"};
  run_loop(two, folder.path() / "best", join(in_folder, {"--fault", kill_at("apply", 1, 30)}), 0);
  in_folder.emplace_back("--resume");
  auto resumed = run_loop(four, folder.path() / "best", in_folder);
  INFO(resumed.output << resumed.errors);
  REQUIRE(resumed.exit_code == 0);
  CHECK(ends_with(expected, lines_of(resumed)));
  CHECK(text_of(folder.path() / "best") == text_of(folder.path() / "unbroken"));
}
