// Jobs that make their steps themselves, in one process or several, of which some are killed at any moment:
// the bits of fit.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "jobs/worker_job.hpp"
#include "support/temp_folder.hpp"

using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

process_result run_steps(int num_processes, const words& options) {
  words command = {STEPS_WORKER, "--steps", "12", "--microbatches", "4"};
  return run_process(worker_job(num_processes, join(command, options)));
}

const words clipped = {"--precision", "f16", "--loss-scale", "268435456", "--clip-grad-norm", "0.5"};

/// What fit does, in one process and one stage.
const values_by_key& expected_of(const words& numbers) {
  static std::map<words, values_by_key> known;
  auto [found, is_new] = known.try_emplace(numbers);
  if (is_new)
    found->second = printed_by(run_steps(1, join({"--by", "fit", "--stages", "1"}, numbers))).values;
  return found->second;
}

void check_same_as_fit(int num_processes, const words& options, const words& numbers) {
  auto result = run_steps(num_processes, join(options, numbers));
  INFO(result.output << result.errors);
  REQUIRE(result.exit_code == 0);
  REQUIRE(expected_of(numbers).size() == 3);
  CHECK(printed_by(result).values == expected_of(numbers));
  bool is_killed = num_processes > 1 && std::ranges::any_of(options, [](const std::string& option) {
                     return option == "--fault" || option == "--kill-rank";
                   });
  CHECK((result.errors.find("killed by SIGKILL") != std::string::npos) == is_killed);
}

}  // namespace

TEST_CASE("steps of one's own in several processes give the bits of fit in one", "[steps]") {
  check_same_as_fit(1, {"--devices", "2"}, clipped);
  check_same_as_fit(2, {"--schedule", "zb_v", "--stages", "4"}, clipped);
}

TEST_CASE("a process may be killed in a step of one's own, or between its two calls: the bits are the same",
          "[steps]") {
  check_same_as_fit(2, {"--snapshot-every", "4", "--fault", kill_at("backward", 0, 6)}, {});
  check_same_as_fit(2, {"--snapshot-every", "4", "--kill-rank", "1", "--kill-step", "7"}, {});
  temp_folder folder;
  check_same_as_fit(2,
                    {"--snapshot-dir", folder.path().string(), "--disk-every", "5", "--fault",
                     kill_at("apply", 0, 8) + ";" + kill_at("apply", 1, 8)},
                    {});
}

TEST_CASE("processes that give different batches are refused, all of them", "[steps]") {
  auto result = run_steps(2, {"--other-rank", "1"});
  CHECK(result.exit_code != 0);
  CHECK_THAT(result.errors, ContainsSubstring("the processes of the job differ: samples"));
}

TEST_CASE("any schedule, number of processes, numbers and failure give the bits of fit", "[.soak][steps]") {
  for (const words& numbers : {words{}, words{"--clip-grad-norm", "0.5"}, clipped})
    for (const auto* schedule :
         {"gpipe", "1f1b", "interleaved_1f1b", "zb_h1", "zb_h2", "zb_v", "dualpipe_v", "looped_bfs"})
      for (int num_processes : {1, 2, 4})
        for (const auto* point :
             {"", "between", "forward", "backward", "weight", "reduce", "apply", "copy_state"})
          for (bool on_disk : {false, true}) {
            // Of 1f1b and gpipe no W stands alone, R needs clipped gradients.
            words options = {"--schedule", schedule, "--stages", "4", "--snapshot-every", "3"};
            if (num_processes == 1) options = join(options, {"--devices", "2"});
            temp_folder folder;
            if (on_disk)
              options = join(options, {"--snapshot-dir", folder.path().string(), "--disk-every", "4"});
            std::string where = point;
            bool stands_alone =
                std::string(schedule).starts_with("zb") || schedule == std::string("dualpipe_v");
            if ((where == "weight" && !stands_alone) || (where == "reduce" && numbers.empty())) continue;
            if (!where.empty() && num_processes == 1) continue;
            if (where == "between")
              options = join(options, {"--kill-rank", "1", "--kill-step", "7"});
            else if (!where.empty())
              options =
                  join(options, {"--fault", kill_at(where, 0, where == "copy_state" && !on_disk ? 5 : 7)});
            INFO(schedule << ", " << num_processes << " processes, killed: " << where);
            check_same_as_fit(num_processes, options, numbers);
          }
}
