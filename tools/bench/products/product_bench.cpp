#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "bench/benches.hpp"
#include "bench/compute/device_rates.hpp"
#include "bench/compute/fma_rate.hpp"
#include "bench/measure/report.hpp"
#include "bench/peers/blas_library.hpp"
#include "bench/products/product_shapes.hpp"
#include "troupe/ops/matmul.hpp"
#include "troupe/ops/threads.hpp"

namespace troupe::bench {
namespace {

struct product_bench_options {
  std::filesystem::path shapes = "tools/bench/products/shapes.txt";
  std::vector<std::string> libraries;
  int threads = 1;
  int rounds = 15;
  std::string only;
  bool json = false;
};

/// Seconds of one call, of as many in a row as take some milliseconds.
template <class Run>
double seconds_of_one(const Run& run, double expected_s) {
  auto repeats = std::clamp(static_cast<int>(std::ceil(5e-3 / expected_s)), 1, 10'000);
  return seconds_of({},
                    [&] {
                      for (int i = 0; i < repeats; ++i) run();
                    }) /
         repeats;
}

class measured_product {
 public:
  measured_product(const product_shape& shape, const product_bench_options& options)
      : shape_(shape),
        threads_(options.threads),
        a_(random_values(shape.transpose_a ? troupe::shape{shape.inner, shape.rows}
                                           : troupe::shape{shape.rows, shape.inner},
                         dtype::f32, {}, "a")),
        b_(random_values(shape.transpose_b ? troupe::shape{shape.columns, shape.inner}
                                           : troupe::shape{shape.inner, shape.columns},
                         dtype::f32, {}, "b")),
        c_(tensor::empty({shape.rows, shape.columns})) {}

  /// One round: the FMA loop, our product, each library's, and the FMA loop again.
  void measure(const std::vector<blas_library>& libraries) {
    auto own = [this] {
      matmul_into(a_, b_, c_, gradient_mode::assign,
                  {.transpose_a = shape_.transpose_a, .transpose_b = shape_.transpose_b});
    };
    constexpr double as_long_as_a_product_s = 5e-3;
    auto before = fma_flops_per_s(threads_, as_long_as_a_product_s);
    auto expected_s = shape_.flops() / before;
    auto own_s = seconds_of_one(own, expected_s);
    std::vector<double> theirs_s;
    for (const auto& library : libraries)
      theirs_s.push_back(seconds_of_one(
          [&] {
            library.multiply(shape_, a_.values<float>().data(), b_.values<float>().data(),
                             c_.values<float>().data());
          },
          expected_s));
    auto after = fma_flops_per_s(threads_, as_long_as_a_product_s);
    auto rate = (before + after) / 2;
    found_["of_fma_rate"].push_back(shape_.flops() / own_s / rate);
    found_["gflops_per_s"].push_back(shape_.flops() / own_s / 1e9);
    found_["fma_gflops_per_s"].push_back(rate / 1e9);
    auto weights = static_cast<double>(b_.size_bytes());
    found_["b_gb_per_s"].push_back(weights / own_s / 1e9);
    for (std::size_t i = 0; i < libraries.size(); ++i)
      found_["over_" + libraries[i].name()].push_back(theirs_s[i] / own_s);
  }

  const measurements& found() const { return found_; }

 private:
  product_shape shape_;
  int threads_;
  tensor a_, b_, c_;
  measurements found_;
};

/// Geometric means of the medians of all shapes, and the least.
void summarize(const std::map<std::string, std::vector<double>>& medians, report& output) {
  for (const auto& [name, values] : medians) {
    double logarithms = 0;
    for (auto value : values) logarithms += std::log(value);
    output.add({{"of"}, {"geometric_mean"}, {"least"}},
               {{"event", "summary"},
                {"of", name},
                {"geometric_mean", std::exp(logarithms / static_cast<double>(values.size()))},
                {"least", std::ranges::min(values)}});
  }
}

void run(const product_bench_options& options) {
  auto shapes = read_product_shapes(options.shapes);
  std::vector<blas_library> libraries;
  for (const auto& text : options.libraries) libraries.emplace_back(text);
  set_num_threads(options.threads);
  report output("products", options.json);
  if (!libraries.empty())
    output.note("threads", std::to_string(options.threads) +
                               " of ours; of the libraries as OMP_NUM_THREADS, OPENBLAS_NUM_THREADS say");
  columns shown{{"product", 8}, {"rows", 5},     {"columns", 7}, {"inner", 5},
                {"stored"},     {"of_fma_rate"}, {"b_gb_per_s"}};
  for (const auto& library : libraries) shown.push_back({"over_" + library.name()});
  std::map<std::string, std::vector<double>> medians;
  for (const auto& shape : shapes) {
    if (shape.name.find(options.only) == std::string::npos) continue;
    measured_product product(shape, options);
    for (int round = 0; round < options.rounds; ++round) product.measure(libraries);
    nlohmann::ordered_json line{{"event", "product"},        {"product", shape.name},
                                {"rows", shape.rows},        {"columns", shape.columns},
                                {"inner", shape.inner},      {"stored", shape.transposes()},
                                {"threads", options.threads}};
    add_spreads(product.found(), line);
    output.add(shown, line);
    for (const auto& [name, values] : product.found())
      if (name == "of_fma_rate" || name.starts_with("over_")) medians[name].push_back(median_of(values));
  }
  if (!medians.empty()) summarize(medians, output);
}

}  // namespace

void add_product_bench(const bench_commands& to) {
  auto options = std::make_shared<product_bench_options>();
  auto& command = *to.bench.add_subcommand(
      "products",
      "Time matrix products against fused multiply-adds of registers, and against other libraries");
  command.add_option("--shapes", options->shapes, "Which products: Troupe's tools/bench/products/shapes.txt");
  command.add_option("--only", options->only, "Products with this in their name");
  command.add_option("--threads", options->threads, "Of our side")->check(CLI::Range(1, 1024));
  command.add_option("--rounds", options->rounds, "Measurements, in turn with the libraries'")
      ->check(CLI::Range(1, 1000));
  command.add_option("--library", options->libraries,
                     "Measure this library beside ours, NAME=FILE; its threads are set by its own variables "
                     "(OMP_NUM_THREADS, OPENBLAS_NUM_THREADS). Any number of times");
  command.add_flag("--json", options->json, "One JSON object for each product");
  command.callback([options] { run(*options); });
}

}  // namespace troupe::bench
