#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "actors/inspector/shown_job.hpp"
#include "troupe/inspector/views.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string shown_text() {
  metrics_history metrics;
  for (const auto& one : running_job().steps.steps) metrics.add(one);
  return prometheus_text(shown_job(), metrics, 3000);
}

}  // namespace

TEST_CASE("metrics are in base units, with help and type, and no actor in a label") {
  auto text = shown_text();
  for (const char* line :
       {"troupe_step 7\n", "troupe_loss 0.25\n", "troupe_recoveries_total 1\n",
        "troupe_tensor_sent_bytes_total{rank=\"1\"} 1000\n", "troupe_report_age_seconds{rank=\"0\"} 1.01\n",
        "troupe_devices{activity=\"computing\"} 2\n", "troupe_step_duration_seconds 0.25\n"})
    CHECK_THAT(text, ContainsSubstring(line));
  std::istringstream lines(text);
  std::set<std::string> typed;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) CHECK(typed.insert(line.substr(7, line.find(' ', 7) - 7)).second);
    if (line.starts_with('#')) continue;
    CHECK(typed.contains(line.substr(0, line.find_first_of("{ "))));
    CHECK(line.find('#') == std::string::npos);
  }
}

TEST_CASE("metrics can be written before anything is known") {
  CHECK_THAT(prometheus_text({}, {}, 0), ContainsSubstring("troupe_processes 1\n"));
}

TEST_CASE("promtool finds nothing to say about the metrics") {
  if (std::system("promtool --version >/dev/null 2>&1") != 0)
    SKIP("promtool is not installed: tools/setup prometheus installs it");
  auto* tool = ::popen("promtool check metrics", "w");
  REQUIRE(tool);
  auto text = shown_text();
  std::fwrite(text.data(), 1, text.size(), tool);
  CHECK(::pclose(tool) == 0);
}
