// Which operations make helper threads. OpenMP's own functions are declared weak: a build with plain kernels
// has none of them, and no teams.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/random_tensor.hpp"
#include "troupe/ops/activation.hpp"
#include "troupe/ops/adam_step.hpp"
#include "troupe/ops/attention.hpp"
#include "troupe/ops/conv2d.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/cross_entropy.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/ops/embedding.hpp"
#include "troupe/ops/linear.hpp"
#include "troupe/ops/norm.hpp"
#include "troupe/ops/pooling.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/ops/reduction.hpp"
#include "troupe/ops/sgd_step.hpp"
#include "troupe/ops/softmax.hpp"
#include "troupe/ops/threads.hpp"

extern "C" {
[[gnu::weak]] void omp_set_num_threads(int);
[[gnu::weak]] int omp_get_max_threads();
}

using troupe::tensor;
using troupe::testing::random_tensor;

namespace {

void need_teams() {
  if (!omp_set_num_threads) SKIP("plain kernels have no teams of threads");
}

std::set<std::string> threads_of_this_process() {
  std::set<std::string> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
    ids.insert(entry.path().filename());
  return ids;
}

/// How many threads there are after `run` that were not there before; those of earlier teams may end
/// meanwhile.
std::size_t threads_made_by(const std::function<void()>& run) {
  auto before = threads_of_this_process();
  run();
  auto after = threads_of_this_process();
  return static_cast<std::size_t>(
      std::ranges::count_if(after, [&](const std::string& id) { return !before.contains(id); }));
}

/// How many helpers `run` makes on a thread of its own that may use `num_threads`; 0: it does not say.
std::size_t helpers_of(int num_threads, const std::function<void()>& run) {
  std::size_t made = 0;
  std::thread([&] {
    if (num_threads > 0) troupe::set_num_threads(num_threads);
    made = threads_made_by(run);
  }).join();
  return made;
}

struct named_operation {
  const char* name;
  std::function<void()> run;
};

/// Adam's and SGD's step over so many weights of [rows, 64].
void step_weights(int count, std::int64_t rows) {
  std::vector<tensor> made;
  std::vector<troupe::adam_slot> adam;
  std::vector<troupe::sgd_slot> sgd;
  for (int i = 0; i < count; ++i) {
    auto weight = random_tensor({rows, 64}, "weight"), gradient = random_tensor({rows, 64}, "gradient");
    auto average = tensor::zeros({rows, 64}), square = tensor::zeros({rows, 64});
    adam.push_back({.weight = weight, .gradient = gradient, .exp_avg = average, .exp_avg_sq = square});
    sgd.push_back({.weight = weight, .gradient = gradient, .momentum_buffer = average});
  }
  troupe::adam_step(adam, 0, {});
  troupe::sgd_step(sgd, {.momentum = 0.9});
}

/// What a layer of `rows` rows of 64 features is made of, forward and backward.
std::vector<named_operation> operations_on(std::int64_t rows) {
  auto x = random_tensor({rows, 64}, "x"), weight = random_tensor({64, 64}, "weight");
  auto vector = random_tensor({64}, "vector"), sum = tensor::zeros({64, 64});
  auto images = random_tensor({rows / 4, 4, 8, 8}, "images"), kernel = random_tensor({4, 4, 3, 3}, "kernel");
  auto qkv = random_tensor({2, rows / 2, 3 * 64}, "qkv");
  auto labels = tensor::zeros({rows}, troupe::dtype::i64);
  return {{"linear", [=] { troupe::linear_forward(x, weight, vector); }},
          {"linear's input gradient", [=] { troupe::linear_backward_input(x, weight); }},
          {"linear's weight gradient",
           [=] { troupe::linear_backward_weight(x, x, sum, vector.clone(), troupe::gradient_mode::assign); }},
          {"relu", [=] { troupe::relu_forward(x); }},
          {"add", [=] { troupe::add(x, x); }},
          {"add of a row", [=] { troupe::add(x, vector); }},
          {"layer norm", [=] { troupe::layer_norm_forward(x, vector, vector, 1e-5); }},
          {"softmax", [=] { troupe::softmax_forward(x); }},
          {"cross entropy", [=] { troupe::cross_entropy_forward(x, labels); }},
          {"cast", [=] { troupe::cast(x, troupe::dtype::bf16); }},
          {"transpose", [=] { troupe::transpose(x); }},
          {"sum", [=] { troupe::sum(x, {.axes = {0}}); }},
          {"norm", [=] { troupe::global_norm(std::span(&x, 1)); }},
          {"rows by index", [=] { troupe::embedding_forward(x, labels); }},
          {"convolution", [=] { troupe::conv2d_forward(images, kernel, {}, {.padding = 1}); }},
          {"pooling", [=] { troupe::max_pool2d_forward(images, {}); }},
          {"attention", [=] { troupe::attention_forward(qkv, {.num_heads = 4}); }},
          {"optimizers", [=] { step_weights(12, rows); }}};
}

}  // namespace

TEST_CASE("small operations start no OpenMP team, whatever number of threads they may use", "[host]") {
  for (const auto& [name, run] : operations_on(32)) {
    INFO(name);
    CHECK(helpers_of(4, run) == 0);
  }
}

TEST_CASE("large operations start an OpenMP team of the number of threads they may use", "[host]") {
  need_teams();
  for (const auto& [name, run] : operations_on(4096)) {
    INFO(name);
    CHECK(helpers_of(4, run) == 3);
    CHECK(helpers_of(1, run) == 0);
  }
}

TEST_CASE(
    "a thread without a set number of threads computes alone, and the program's OpenMP setting is unchanged",
    "[host]") {
  need_teams();
  for (const auto& [name, run] : operations_on(4096)) {
    INFO(name);
    auto made = helpers_of(0, [&] {
      omp_set_num_threads(4);
      run();
    });
    CHECK(made == 0);
  }
  omp_set_num_threads(7);
  for (const auto& [name, run] : operations_on(32)) run();
  CHECK(omp_get_max_threads() == 7);
  omp_set_num_threads(1);
}
