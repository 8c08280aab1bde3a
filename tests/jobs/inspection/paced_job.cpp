#include "jobs/inspection/paced_job.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>

namespace troupe::testing {
namespace {

std::vector<std::string> command(int num_processes, const std::string& until,
                                 const std::vector<std::string>& options) {
  std::vector<std::string> made = {TROUPE_PROGRAM,
                                   "launch",
                                   "--nproc-per-node",
                                   std::to_string(num_processes),
                                   "--",
                                   PACED_WORKER,
                                   "--inspect",
                                   "--microbatches",
                                   "4",
                                   "--until",
                                   until};
  made.insert(made.end(), options.begin(), options.end());
  return made;
}

std::string weights_in(const std::string& output) {
  auto line = output.find("weights ");
  REQUIRE(line != std::string::npos);
  return output.substr(line + 8, 64);
}

}  // namespace

paced_job::paced_job(int num_processes, const std::vector<std::string>& options)
    : job_(command(num_processes, (folder_.path() / "until").string(), options)) {
  set_address(job_.url());
}

void paced_job::set_address(const std::string& url) {
  auto colon = url.rfind(':'), mark = url.find("/#token=");
  port_ = static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1, mark - colon - 1)));
  token_ = url.substr(mark + 8);
}

void paced_job::follow_rank_0() { set_address(job_.process().wait_for_line("http://")); }

nlohmann::json paced_job::read(const std::string& name) const {
  auto answer = get("/api/v1/" + name);
  INFO(name << ": " << answer.body);
  REQUIRE(answer.status == 200);
  return nlohmann::json::parse(answer.body);
}

client_socket paced_job::events() const {
  client_socket connection(port_);
  connection.send("GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n" + bearer() + "\r\n\r\n");
  return connection;
}

std::string paced_job::finish() {
  std::ofstream(folder_.path() / "until") << "now";
  auto ended = job_.process().wait();
  INFO(ended.errors);
  REQUIRE(ended.exit_code == 0);
  return weights_in(ended.output);
}

const std::vector<std::string> many_steps = {"--epochs", "60"};

std::vector<std::string> with_commands(std::vector<std::string> more) {
  more.insert(more.end(), many_steps.begin(), many_steps.end());
  more.insert(more.end(), {"--inspect-control", "--log-level", "warn"});
  return more;
}

std::string untouched_weights(const std::vector<std::string>& options) {
  std::vector<std::string> command = {PACED_WORKER, "--microbatches", "4"};
  command.insert(command.end(), options.begin(), options.end());
  auto ended = run_process({.command = command, .environment = {}, .without = {"RANK", "WORLD_SIZE"}});
  INFO(ended.errors);
  REQUIRE(ended.exit_code == 0);
  return weights_in(ended.output);
}

}  // namespace troupe::testing
