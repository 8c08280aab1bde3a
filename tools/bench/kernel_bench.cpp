#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "benches.hpp"
#include "device_rates.hpp"
#include "kernel_cases.hpp"
#include "machine.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

struct kernel_options {
  std::string device = "cpu";
  std::string type = "f32";
  int threads = 1;
  int rounds = 5;
  bool json = false;
};

/// What a kernel cannot be faster than.
struct rates {
  double bytes_per_s, flops_per_s;
  double floor_s(const kernel_case& of) const {
    return std::max(of.bytes / bytes_per_s, of.flops / flops_per_s);
  }
};

void print(const kernel_case& of, double seconds, double floor_s, const kernel_options& options) {
  auto name = std::string(to_string(of.type));
  if (options.json) {
    nlohmann::ordered_json line{
        {"event", "kernel"},   {"kernel", of.name},         {"dtype", name},
        {"us", seconds * 1e6}, {"floor_us", floor_s * 1e6}, {"of_floor", floor_s / seconds}};
    if (of.bytes > 0) line["gb_per_s"] = of.bytes / seconds / 1e9;
    if (of.flops > 0) line["gflops_per_s"] = of.flops / seconds / 1e9;
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("%-28s %-5s %10.1f us   %6.1f %% of its floor   %10.1f %s\n", of.name.c_str(), name.c_str(),
              seconds * 1e6, 100 * floor_s / seconds, (of.flops > 0 ? of.flops : of.bytes) / seconds / 1e9,
              of.flops > 0 ? "GFLOP/s" : "GB/s");
}

int run(const kernel_options& options) {
  set_num_threads(options.threads);
  auto where = device_from_string(options.device);
  require_device(where);
  auto type = options.type == "f32" ? dtype::f32 : dtype::bf16;
  product_rate product(type, where);
  product.measure();
  rates of{copy_bytes_per_s(where), product.flops_per_s()};
  if (options.json)
    std::printf("%s\n", nlohmann::ordered_json{{"event", "rates"},
                                               {"device", device_name(where)},
                                               {"threads", options.threads},
                                               {"copy_gb_per_s", of.bytes_per_s / 1e9},
                                               {"product_gflops_per_s", of.flops_per_s / 1e9},
                                               {"machine", to_json(this_machine())}}
                            .dump()
                            .c_str());
  else
    std::printf("%s, %d thread%s; floors: a copy's %.1f GB/s, a %s product's %.0f GFLOP/s\n",
                device_name(where).c_str(), options.threads, options.threads == 1 ? "" : "s",
                of.bytes_per_s / 1e9, options.type.c_str(), of.flops_per_s / 1e9);
  auto sizes = where.type == device::kind::cpu ? cpu_sizes() : gpu_sizes();
  for (const auto& family : kernel_cases(sizes, type, where))
    for (const auto& each : family())
      print(each, best_seconds_of(where, options.rounds, each.run), of.floor_s(each), options);
  return 0;
}

}  // namespace

void add_kernel_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<kernel_options>();
  auto* command = app.add_subcommand("kernels", "Time each kernel against a copy's or a product's rate");
  command->add_option("--device", options->device, "cpu, or a GPU such as cuda:0")->capture_default_str();
  command->add_option("--dtype", options->type, "f32, or bf16 where mixed precision has it")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Of the CPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Measurements, of which the best counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object for each kernel");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
