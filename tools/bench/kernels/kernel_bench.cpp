#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/benches.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/kernels/kernel_cases.hpp"
#include "bench/measure/machine.hpp"
#include "bench/measure/spread.hpp"
#include "bench/peers/torch_peer.hpp"
#include "troupe/ops/numeric_class.hpp"
#include "troupe/ops/threads.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe::bench {
namespace {

struct kernel_options {
  std::string device = "cpu";
  bench_precision precision;
  int threads = 1;
  int rounds = 5;
  std::string only;
  std::filesystem::path torch, torch_script = "tools/bench/torch_kernels.py";
  bool json = false;
};

/// What a kernel cannot be faster than.
struct rates {
  double bytes_per_s, flops_per_s;
  double floor_s(const kernel_case& of) const {
    return std::max(of.bytes / bytes_per_s, of.flops / flops_per_s);
  }
};

/// One kernel's rounds.
struct measurement {
  double best_s = 0;
  std::vector<double> own_s, over_torch;  ///< the ratios of speeds; none if there is nothing to compare with
};

measurement measure(const kernel_case& of, device where, int rounds, torch_peer* torch) {
  measurement found;
  for (int round = 0; round < rounds; ++round) {
    found.own_s.push_back(best_seconds_of(where, 1, of.run));
    auto theirs = torch ? torch->seconds_of(of) : std::nullopt;
    if (theirs) found.over_torch.push_back(*theirs / found.own_s.back());
  }
  found.best_s = std::ranges::min(found.own_s);
  return found;
}

void print_json(const kernel_case& of, const measurement& found, double floor_s) {
  nlohmann::ordered_json line{{"event", "kernel"},
                              {"kernel", of.name},
                              {"extents", of.extents.extents()},
                              {"dtype", to_string(of.type)},
                              {"us", found.best_s * 1e6},
                              {"floor_us", floor_s * 1e6},
                              {"of_floor", floor_s / found.best_s}};
  if (of.bytes > 0) line["gb_per_s"] = of.bytes / found.best_s / 1e9;
  if (of.flops > 0) line["gflops_per_s"] = of.flops / found.best_s / 1e9;
  if (!found.over_torch.empty()) line["over_torch"] = to_json(spread_of(found.over_torch));
  std::printf("%s\n", line.dump().c_str());
}

void print(const kernel_case& of, const measurement& found, double floor_s) {
  std::printf("%-26s %-17s %-4s %9.1f us  %6.1f %% of its floor  %8.1f %-7s", of.name.c_str(),
              to_string(of.extents).c_str(), std::string(to_string(of.type)).c_str(), found.best_s * 1e6,
              100 * floor_s / found.best_s, (of.flops > 0 ? of.flops : of.bytes) / found.best_s / 1e9,
              of.flops > 0 ? "GFLOP/s" : "GB/s");
  if (!found.over_torch.empty())
    std::printf("  over torch %s", to_text(spread_of(found.over_torch), 1, 2).c_str());
  std::printf("\n");
}

int run(const kernel_options& options) {
  set_num_threads(options.threads);
  auto where = device_from_string(options.device);
  require_device(where);
  options.precision.choose(where);
  auto type = options.precision.dtype();
  product_rate product(type, where);
  product.measure();
  rates of{copy_bytes_per_s(where), product.flops_per_s()};
  if (options.json)
    std::printf("%s\n", nlohmann::ordered_json{{"event", "rates"},
                                               {"device", device_name(where)},
                                               {"numeric_class", numeric_class(where)},
                                               {"dtype", options.precision.name},
                                               {"threads", options.threads},
                                               {"copy_gb_per_s", of.bytes_per_s / 1e9},
                                               {"product_gflops_per_s", of.flops_per_s / 1e9},
                                               {"machine", to_json(this_machine())}}
                            .dump()
                            .c_str());
  else
    std::printf("%s, %d thread%s; floors: a copy's %.1f GB/s, a %s product's %.0f GFLOP/s\n",
                device_name(where).c_str(), options.threads, options.threads == 1 ? "" : "s",
                of.bytes_per_s / 1e9, options.precision.name.c_str(), of.flops_per_s / 1e9);
  std::optional<torch_peer> torch;
  if (!options.torch.empty()) torch.emplace(options.torch, options.torch_script, options.threads);
  auto sizes = where.type == device::kind::cpu ? cpu_sizes() : gpu_sizes();
  for (const auto& family : kernel_cases(sizes, type, where))
    for (const auto& each : family()) {
      if (each.name.find(options.only) == std::string::npos) continue;
      auto found = measure(each, where, options.rounds, torch ? &*torch : nullptr);
      options.json ? print_json(each, found, of.floor_s(each)) : print(each, found, of.floor_s(each));
      std::fflush(stdout);  // whoever ends the bench has what was measured before
    }
  return 0;
}

}  // namespace

void add_kernel_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<kernel_options>();
  auto* command = app.add_subcommand("kernels", "Time each kernel against a copy's or a product's rate");
  command->add_option("--device", options->device, "cpu, or a GPU such as cuda:0")->capture_default_str();
  command
      ->add_option("--dtype", options->precision.name,
                   "f32, tf32 on a GPU, or bf16 where mixed precision has it")
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Of the CPU")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      ->add_option("--rounds", options->rounds,
                   "Measurements, of which the best counts, in turn with the peer's")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--only", options->only, "Kernels with this in their name");
  command->add_option(
      "--torch", options->torch,
      "Measure PyTorch's kernels beside them on the CPU, in the system with this root; / is this one");
  command->add_option("--torch-script", options->torch_script, "Troupe's tools/bench/torch_kernels.py")
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object for each kernel");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace troupe::bench
