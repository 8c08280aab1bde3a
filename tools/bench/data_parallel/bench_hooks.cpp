#include "bench/data_parallel/bench_hooks.hpp"

#include "troupe/parallel/compression/power_sgd.hpp"
#include "troupe/parallel/compression/rounded_gradients.hpp"
#include "troupe/parallel/compression/top_k_gradients.hpp"

namespace troupe::bench {

const std::vector<std::string>& bench_hook_names() {
  static const std::vector<std::string> names{"none", "bf16", "topk", "powersgd"};
  return names;
}

std::shared_ptr<comm_hook> make_bench_hook(const std::string& name, double momentum,
                                           std::int64_t dense_steps) {
  if (name == "bf16") return std::make_shared<rounded_gradients>();
  if (name == "topk")
    return std::make_shared<top_k_gradients>(
        top_k_gradients_options{.ratio = 0.01, .momentum = momentum, .dense_steps = dense_steps});
  if (name == "powersgd")
    return std::make_shared<power_sgd>(power_sgd_options{.rank = 4, .dense_steps = dense_steps});
  return nullptr;
}

}  // namespace troupe::bench
