// Prometheus itself scrapes a job that trains, with the token, and answers queries about it.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <thread>

#include "jobs/inspection/paced_job.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;
using json = nlohmann::json;

namespace {

bool has_program(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

/// A Prometheus with its own folder, on a free port of this machine, that scrapes the job.
class prometheus {
 public:
  explicit prometheus(const paced_job& job)
      : process_({.command = {"prometheus", "--config.file=" + configuration(job),
                              "--storage.tsdb.path=" + (folder_.path() / "data").string(),
                              "--web.listen-address=127.0.0.1:0"},
                  .environment = {},
                  .without = {}}) {
    auto line = process_.wait_for_line("\"Listening on\" address=127.0.0.1:");
    port_ = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
    // It says that it is ready before or after that line.
    while (ask_http(port_, "GET", "/-/ready").status != 200) std::this_thread::sleep_for(50ms);
  }

  /// The samples of a query now; empty: none yet.
  json query(const std::string& text) const {
    auto answer = ask_http(port_, "GET", "/api/v1/query?query=" + text);
    INFO(answer.body);
    REQUIRE(answer.status == 200);
    return json::parse(answer.body.substr(answer.body.find('{')))["data"]["result"];
  }
  /// The value of the only sample; none: it has not been scraped.
  std::optional<double> value(const std::string& text) const {
    auto samples = query(text);
    if (samples.empty()) return {};
    REQUIRE(samples.size() == 1);
    return std::stod(samples[0]["value"][1].get<std::string>());
  }

 private:
  std::string configuration(const paced_job& job) const {
    auto file = (folder_.path() / "prometheus.yml").string();
    std::ofstream(file) << "global: { scrape_interval: 200ms, scrape_timeout: 200ms }\n"
                           "scrape_configs:\n"
                           "  - job_name: troupe\n"
                           "    authorization: { credentials: \""
                        << job.token() << "\" }\n"
                        << "    static_configs: [ { targets: [ \"127.0.0.1:" << job.port() << "\" ] } ]\n";
    return file;
  }

  temp_folder folder_;
  background_process process_;
  std::uint16_t port_ = 0;
};

}  // namespace

TEST_CASE("Prometheus scrapes a running job, and its step is between what the job said before and after",
          "[prometheus][timed]") {
  if (!has_program("prometheus")) SKIP("prometheus is not installed: tools/setup prometheus installs it");
  paced_job job(2, {"--epochs", "30"});
  auto events = job.events();
  for (int i = 0; i < 3; ++i) events.read_until("event: step");
  prometheus scraper(job);
  auto before = job.read("job")["step"].get<double>();
  REQUIRE(before > 0);
  std::optional<double> scraped;
  while (!scraped || *scraped < before) {
    std::this_thread::sleep_for(50ms);
    REQUIRE(!events.read_until("event: step").empty());  // the job goes on
    scraped = scraper.value("troupe_step");
  }
  CHECK(*scraped <= job.read("job")["step"].get<double>());
  CHECK(scraper.value("up") == 1);
  CHECK(scraper.value("troupe_processes") == 2);
  CHECK(scraper.query("troupe_tensor_sent_bytes_total").size() == 2);
  CHECK(job.finish() == untouched_weights({"--epochs", "30"}));
}

TEST_CASE("promtool finds nothing to say about the metrics of a running job", "[prometheus]") {
  if (!has_program("promtool")) SKIP("promtool is not installed: tools/setup prometheus installs it");
  paced_job job(2, {"--epochs", "3"});
  job.events().read_until("event: step");
  temp_folder folder;
  auto file = (folder.path() / "metrics").string();
  std::ofstream(file) << job.get("/metrics").body;
  auto said = run_in_shell("promtool check metrics < " + file);
  CHECK(said.output == "");
  CHECK(said.errors == "");
  CHECK(said.exit_code == 0);
  job.finish();
}
