// What becomes of commands that are open when a job ends.
#include <spdlog/sinks/null_sink.h>

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/temp_folder.hpp"
#include "troupe/inspector/commands/open_commands.hpp"
#include "troupe/inspector/inspection.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using json = nlohmann::json;

namespace {

open_command open_command_of(const std::string& id, control_action action) {
  open_command one;
  one.id = id;
  one.command.action = action;
  return one;
}

std::vector<json> lines_in(const std::filesystem::path& file) {
  std::vector<json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE(
    "commands that are open when the job ends get an outcome, in the audit log and for those who watch") {
  temp_folder folder;
  inspection_options options;
  options.address = "127.0.0.1:0";
  options.job_token = "the-token-of-the-job";
  options.takes_commands = true;
  options.audit.file = folder.path() / "audit.jsonl";
  options.log = std::make_shared<spdlog::logger>("log", std::make_shared<spdlog::sinks::null_sink_mt>());
  {
    inspection watched(options);
    watched.begin("job-7");
    const auto& job = *watched.job();
    job.commands()->on_post([] {});
    for (const auto& one :
         {open_command_of("0-1", control_action::snapshot), open_command_of("0-2", control_action::kill),
          open_command_of("0-3", control_action::pause)})
      REQUIRE(job.commands()->post(one) == open_commands::posted::taken);
    job.commands()->pass("0-1");
    end_command(*watched.job(), "0-3", {command_result::done, "the job stands", {}});
    watched.end();
    CHECK(job.commands()->all().empty());
    CHECK(job.commands()->rows().size() == 3);
    CHECK(job.events()->newest_id() == 3);
  }
  auto lines = lines_in(options.audit.file);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0]["outcome"] == "done");
  CHECK(lines[1]["id"] == "0-1");
  CHECK(lines[1]["job_id"] == "job-7");
  CHECK(lines[1]["outcome"] == "lost");
  CHECK(lines[1]["text"] == "the job has ended while the command was being carried out");
  CHECK(lines[2]["id"] == "0-2");
  CHECK(lines[2]["outcome"] == "lost");
  CHECK(lines[2]["text"] == "the job has ended before the command was carried out");
}
