#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <optional>

#include "bench/benches.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/compute/fma_rate.hpp"
#include "bench/kernels/kernel_cases.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/torch.hpp"
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
struct device_rates {
  double bytes_per_s, flops_per_s;
  double floor_s(const kernel_case& measured) const {
    return std::max(measured.bytes / bytes_per_s, measured.flops / flops_per_s);
  }
};

/// Whether products are held to fused multiply-adds of registers, in place of a large product.
bool has_fma_floor(const kernel_options& options, device where) {
  return where.type == device::kind::cpu && options.precision.name == "f32";
}

device_rates measure_rates(const kernel_options& options, device where, report& output) {
  product_rate product(options.precision.dtype(), where);
  product.measure();
  device_rates rates{copy_bytes_per_s(where), product.flops_per_s()};
  output.add({{"device"}, {"threads"}, {"dtype"}, {"copy_gb_per_s"}, {"product_gflops_per_s"}},
             {{"event", "rates"},
              {"device", device_name(where)},
              {"numeric_class", numeric_class(where)},
              {"dtype", options.precision.name},
              {"threads", options.threads},
              {"copy_gb_per_s", rates.bytes_per_s / 1e9},
              {"product_gflops_per_s", rates.flops_per_s / 1e9}});
  return rates;
}

/// `torch`: null if PyTorch is not measured.
nlohmann::ordered_json measure(const kernel_case& measured, device_rates rates, device where,
                               const kernel_options& options, torch_kernels* torch) {
  nlohmann::ordered_json line{{"event", "kernel"},
                              {"kernel", measured.name},
                              {"extents", measured.extents.extents()},
                              {"dtype", to_string(measured.type)}};
  std::vector<double> own_s, over_torch, fma_rates;
  auto measure_fma = [&] {
    constexpr double as_long_as_a_kernel_s = 5e-3;
    if (has_fma_floor(options, where) && measured.flops > 0)
      fma_rates.push_back(fma_flops_per_s(options.threads, as_long_as_a_kernel_s));
  };
  for (int round = 0; round < options.rounds; ++round) {
    measure_fma();
    own_s.push_back(best_seconds_of(where, 1, measured.run));
    measure_fma();
    auto torch_s = torch ? torch->seconds_of(line) : std::nullopt;
    if (torch_s) over_torch.push_back(*torch_s / own_s.back());
  }
  if (!fma_rates.empty()) rates.flops_per_s = std::ranges::max(fma_rates);
  auto best_s = std::ranges::min(own_s), floor_s = rates.floor_s(measured);
  line.update({{"us", best_s * 1e6}, {"floor_us", floor_s * 1e6}, {"of_floor", floor_s / best_s}});
  if (measured.bytes > 0) line["gb_per_s"] = measured.bytes / best_s / 1e9;
  if (measured.flops > 0) line["gflops_per_s"] = measured.flops / best_s / 1e9;
  if (!fma_rates.empty()) line["fma_gflops_per_s"] = rates.flops_per_s / 1e9;
  if (!over_torch.empty()) line["over_torch"] = spread_json(over_torch);
  return line;
}

void run(const kernel_options& options) {
  set_num_threads(options.threads);
  auto where = device_from_string(options.device);
  require_device(where);
  options.precision.choose(where);
  std::optional<torch_kernels> torch;
  if (!options.torch.empty()) torch.emplace(options.torch, options.torch_script, options.threads);
  report output("kernels", options.json);
  auto rates = measure_rates(options, where, output);
  columns shown{{"kernel", 28},  {"extents", 17}, {"dtype"},       {"us", 9},
                {"of_floor", 9}, {"gb_per_s", 9}, {"gflops_per_s"}};
  if (torch) shown.push_back({"over_torch"});
  auto sizes = where.type == device::kind::cpu ? cpu_sizes() : gpu_sizes();
  for (const auto& family : kernel_cases(sizes, options.precision.dtype(), where))
    for (const auto& each : family())
      if (each.name.find(options.only) != std::string::npos)
        output.add(shown, measure(each, rates, where, options, torch ? &*torch : nullptr));
}

}  // namespace

void add_kernel_bench(const bench_commands& to) {
  auto options = std::make_shared<kernel_options>();
  auto& command =
      *to.bench.add_subcommand("kernels", "Time each kernel against a copy's or a product's rate");
  command.add_option("--device", options->device, "cpu, or a GPU such as cuda:0");
  command
      .add_option("--dtype", options->precision.name,
                  "f32, tf32 on a GPU, or bf16 where mixed precision has it")
      ->check(CLI::IsMember({"f32", "tf32", "bf16"}));
  command.add_option("--threads", options->threads, "Of the CPU")->check(CLI::Range(1, 1024));
  command
      .add_option("--rounds", options->rounds,
                  "Measurements, of which the best counts, in turn with the peer's")
      ->check(CLI::Range(1, 1000));
  command.add_option("--only", options->only, "Kernels with this in their name");
  command.add_option(
      "--torch", options->torch,
      "Measure PyTorch's kernels beside them on the CPU, in the system with this root; / is this one");
  command.add_option("--torch-script", options->torch_script, "Troupe's tools/bench/torch_kernels.py");
  command.add_flag("--json", options->json, "One JSON object for each kernel");
  command.callback([options] { run(*options); });
}

}  // namespace troupe::bench
