#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>

#include "actors/inspector/shown_job.hpp"
#include "troupe/inspector/views/views.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
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
        "troupe_tensor_sent_bytes_total{rank=\"1\"} 1000\n",
        "troupe_tensor_shared_bytes_total{rank=\"0\"} 600\n", "troupe_report_age_seconds{rank=\"0\"} 1.01\n",
        "troupe_devices{activity=\"computing\"} 2\n", "troupe_step_duration_seconds 0.25\n",
        "troupe_actor_mailbox_messages{role=\"device\",rank=\"1\"} 3\n",
        "troupe_actor_mailbox_oldest_seconds{role=\"device\",rank=\"0\"} 0.25\n",
        "troupe_actor_messages_received_total{role=\"supervisor\",rank=\"0\"} 50\n",
        "troupe_actor_sent_bytes_total{role=\"device\",rank=\"0\"} 1200\n",
        "troupe_tensor_in_flight_bytes{rank=\"0\"} 200\n", "troupe_control_queued_bytes{rank=\"1\"} 30\n"})
    CHECK_THAT(text, ContainsSubstring(line));
  std::istringstream lines(text);
  std::set<std::string> typed;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) CHECK(typed.insert(line.substr(7, line.find(' ', 7) - 7)).second);
    if (line.starts_with('#')) continue;
    auto name = line.substr(0, line.find_first_of("{ "));
    for (const char* part : {"_bucket", "_sum", "_count"})
      if (name == "troupe_actor_handler_duration_seconds" + std::string(part))
        name = "troupe_actor_handler_duration_seconds";
    CHECK(typed.contains(name));
    CHECK(line.find('#') == std::string::npos);
  }
}

TEST_CASE("times of handlers are a histogram: its buckets rise to the count, the last has no bound") {
  auto text = shown_text();
  auto of_device = [](const std::string& part, const std::string& more = {}) {
    return "troupe_actor_handler_duration_seconds" + part + "{role=\"device\",rank=\"0\"" + more + "} ";
  };
  for (const auto& line : {of_device("_bucket", ",le=\"1.024e-06\"") + "0\n",
                           of_device("_bucket", ",le=\"1.6384e-05\"") + "100\n",
                           of_device("_bucket", ",le=\"17.179869184\"") + "100\n",
                           of_device("_bucket", ",le=\"+Inf\"") + "100\n", of_device("_sum") + "2\n",
                           of_device("_count") + "100\n"})
    CHECK_THAT(text, ContainsSubstring(line));
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
