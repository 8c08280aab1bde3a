#include "bench/benches.hpp"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "troupe/error/errors.hpp"

namespace troupe::bench {

bench_commands add_bench_commands(CLI::App& app, int& exit_code) {
  auto* benches = app.add_subcommand("bench", "Measure this installation on this machine");
  benches->require_subcommand(1);
  benches->option_defaults()->always_capture_default();
  auto* workers = benches->add_subcommand("worker", "A process that another bench measures");
  workers->group("");
  workers->require_subcommand(1);
  return {*benches, *workers, exit_code};
}

void add_worker(const bench_commands& to, const char* name, std::function<void(const nlohmann::json&)> run) {
  auto* worker = to.workers.add_subcommand(name, "A process that a bench measures");
  auto options = std::make_shared<std::string>("{}");
  worker->add_option("options", *options, "A JSON object");
  worker->callback([options, run = std::move(run)] {
    auto given = nlohmann::json::parse(*options, nullptr, false);
    if (!given.is_object()) throw bad_input("bench worker: expected a JSON object, got " + *options);
    run(given);
  });
}

}  // namespace troupe::bench
