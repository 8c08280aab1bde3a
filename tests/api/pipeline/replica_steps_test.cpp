// What a stage's program does with the gradients of its replicas: buckets leave during the last backward
// pass, and weights step as sums come.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "api/pipeline/tested_programs.hpp"
#include "replica_steps.hpp"
#include "support/bits.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/detail/module_program.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("gradients of a stage's large weights leave as they are computed, the last layer's first") {
  auto program = program_with(optim::Adam());
  REQUIRE(program->num_buckets(layout::mesh_axis::dp, 0) == 3);  // all small ones, 0.weight, 2.weight
  CHECK(compute(*program, 0) == std::vector<int>{2, 1});
  take_sums(*program);
  program->apply(0);
  CHECK(compute(*program, 1, false) == std::vector<int>{2, 1});
}

TEST_CASE("blocks of rows of a large gradient leave while the others are computed, with the same bits") {
  nn::Sequential model(nn::Linear(200, 1100), nn::ReLU(), nn::Linear(1100, 1100), nn::ReLU(),
                       nn::Linear(1100, 3));
  auto make = [&] {
    return testing::programs_of(model, 1, {.optimizer = optim::Adam(), .seed = 7})({.stage = 0});
  };
  std::vector<std::vector<float>> gradients;
  for (bool in_one : {true, false}) {
    auto program = make();
    std::vector<float> last_elements;
    auto look = [&](int bucket) {
      if (bucket >= 2 && bucket <= 4)  // of 2.weight
        last_elements.push_back(program->bucket(layout::mesh_axis::dp, 4).to({}).values<float>().back());
    };
    CHECK(compute(*program, 0, in_one, look) == std::vector<int>{2, 3, 4, 1});
    REQUIRE(last_elements.size() == 3);
    CHECK(last_elements[0] == 0);  // of the second block of rows
    CHECK(last_elements[2] != 0);
    auto& all = gradients.emplace_back();
    for (int bucket = 0; bucket < 5; ++bucket) {
      auto elements = program->bucket(layout::mesh_axis::dp, bucket).to({});
      for (float each : elements.values<float>()) all.push_back(each);
    }
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("weights that step as sums come have the bits of an optimizer that waits for all") {
  auto early = program_with(optim::Adam()), late = program_with(whole_adam());
  for (std::uint64_t step = 0; step < 3; ++step)
    for (auto* each : {early.get(), late.get()}) {
      compute(*each, step, each == early.get());
      take_sums(*each);
      CHECK(each->non_finite().empty());
      each->apply(step);
    }
  check_same(*early, *late);
}

TEST_CASE("a sum that is not finite is named, whether its weight has stepped or not") {
  for (const auto& optimizer : {optim::Optimizer(optim::Adam()), whole_adam()})
    for (int broken : {1, 2}) {
      auto program = program_with(optimizer);
      compute(*program, 0);
      take_sums(*program, broken);
      CHECK(program->non_finite() == (broken == 1 ? "the gradient of 0.weight" : "the gradient of 2.weight"));
    }
}

TEST_CASE("a step that is discarded after some weights have stepped leaves nothing behind") {
  auto program = program_with(optim::Adam());
  auto saved = copy_of_state(*program);
  compute(*program, 0);
  auto bucket = program->bucket(layout::mesh_axis::dp, 1).clone();
  program->take_sums(layout::mesh_axis::dp, 1, {bucket});
  check_discarded(*program, saved);
}

namespace {

/// Steps 0, then 1, which is lost after its gradients have left and done again, have the bits of both without
/// the loss. `exchange`: of one step. Returns the names of what is saved of the gradients.
std::vector<std::string> check_lost_step(const numeric_options& numerics, const std::string& prefix,
                                         void (*exchange)(program::stage_program&)) {
  auto program = program_with(optim::Adam(), numerics), expected = program_with(optim::Adam(), numerics);
  auto step = [exchange](program::stage_program& one, std::uint64_t number) {
    compute(one, number);
    exchange(one);
    one.apply(number);
    one.take_metrics();
  };
  for (auto* each : {program.get(), expected.get()}) step(*each, 0);
  std::vector<named_tensor> saved;
  std::vector<std::string> names;
  for (const auto& each : program->state()) {
    saved.push_back({each.name, each.value.clone()});
    if (!each.name.starts_with(prefix)) continue;
    names.push_back(each.name);
    auto held = each.value.to({});
    CHECK(std::ranges::any_of(held.values<float>(), [](float value) { return value != 0; }));
  }
  compute(*program, 1);
  exchange(*program);
  program->discard();
  program->load_state(saved);
  program->take_metrics();
  for (auto* each : {program.get(), expected.get()}) step(*each, 1);
  check_same(*expected, *program);
  return names;
}

}  // namespace

TEST_CASE("with top-k a large gradient leaves as a message, and what is held back is a part of the state") {
  auto names =
      check_lost_step({.exchange = {.top_k_gradients = 0.1}}, "top_k.", [](program::stage_program& one) {
        for (int bucket = 0; bucket < one.num_buckets(layout::mesh_axis::dp, 0); ++bucket) {
          auto given = one.bucket(layout::mesh_axis::dp, bucket);
          bool is_large = bucket > 0;  // 30000 elements each
          CHECK(given.dtype() == (is_large ? dtype::i32 : dtype::f32));
          if (is_large) CHECK(given.num_elements() == 2 * 3000);
          one.take_sums(layout::mesh_axis::dp, bucket,
                        is_large ? std::vector{given, given} : std::vector{given});
        }
      });
  CHECK(names == std::vector<std::string>{"top_k.residual/0.weight", "top_k.residual/2.weight"});
}

TEST_CASE("with PowerSGD a large gradient leaves as two factors, the second when the first are summed") {
  auto names =
      check_lost_step({.exchange = {.power_sgd_rank = 3}}, "power_sgd.", [](program::stage_program& one) {
        REQUIRE(one.num_buckets(layout::mesh_axis::dp, 0) ==
                5);  // two for 0.weight [150, 200], two for 2.weight [200, 150]
        for (int second : {4, 2}) {
          CHECK_FALSE(one.bucket(layout::mesh_axis::dp, second).defined());
          auto first_factor = one.bucket(layout::mesh_axis::dp, second - 1);
          CHECK(first_factor.num_elements() == (second == 2 ? 150 : 200) * 3);
          one.take_sums(layout::mesh_axis::dp, second - 1, {first_factor.clone()});
          auto second_factor = one.bucket(layout::mesh_axis::dp, second);
          CHECK(second_factor.num_elements() == (second == 2 ? 200 : 150) * 3);
          one.take_sums(layout::mesh_axis::dp, second, {second_factor.clone()});
        }
        one.take_sums(layout::mesh_axis::dp, 0, {one.bucket(layout::mesh_axis::dp, 0)});
      });
  CHECK(names == std::vector<std::string>{"power_sgd.residual/0.weight", "power_sgd.q/0.weight",
                                          "power_sgd.residual/2.weight", "power_sgd.q/2.weight"});
}

TEST_CASE("replicas that average their weights exchange nothing in other steps, and then what they stepped") {
  auto program = program_with(optim::Adam(), {.exchange = {.average_every = 2}});
  CHECK(program->num_buckets(layout::mesh_axis::dp, 0) == 0);
  CHECK(program->num_buckets(layout::mesh_axis::dp, 1) == 3);
  for (std::uint64_t step : {0, 1}) {
    CHECK(compute(*program, step, step == 1).empty());  // no gradient leaves
    program->apply(step);
  }
  auto find = [&program](const std::string& name) {
    auto state = program->state();
    return std::ranges::find(state, name, &named_tensor::name)->value;
  };
  auto weight = find("0.weight"), moment = find("0.weight/exp_avg");
  auto own = weight.to({}).clone(), own_moment = moment.clone();
  for (int bucket = 0; bucket < 3; ++bucket) {
    auto sum = program->bucket(layout::mesh_axis::dp, bucket).to({}).clone();
    for (float& each : sum.values<float>()) each *= 3;  // of another replica, whose weights are twice these
    program->take_sums(layout::mesh_axis::dp, bucket, {sum});
  }
  auto averaged = weight.to({});
  for (std::size_t i = 0; i < 30000; ++i)
    REQUIRE(averaged.values<float>()[i] == 0.5F * (3 * own.values<float>()[i]));
  CHECK(same_bits(moment, own_moment));
}

TEST_CASE("large gradients move to memory that others read in place, once, and steps have the same bits",
          "[host]") {
  auto moved = program_with(optim::Adam()), kept = program_with(optim::Adam());
  std::vector<tensor> blocks;
  auto shared = [&](shape extents, dtype type) {
    auto made = tensor::empty(std::move(extents), type);
    std::memset(made.bytes().data(), 255, made.size_bytes());
    return blocks.emplace_back(made);
  };
  auto is_in_block = [&](const tensor& bucket) {
    return std::ranges::any_of(blocks, [&](const tensor& block) {
      auto all = std::as_const(block).bytes(), own = bucket.bytes();
      return own.data() >= all.data() && own.data() + own.size() <= all.data() + all.size();
    });
  };
  for (std::uint64_t step = 0; step < 3; ++step) {
    moved->share_gradients(shared);
    CHECK(blocks.size() == 1);  // of both weights
    for (auto* each : {moved.get(), kept.get()}) {
      compute(*each, step);
      if (each == moved.get())
        for (int bucket : {1, 2}) CHECK(is_in_block(each->bucket(layout::mesh_axis::dp, bucket)));
      take_sums(*each);
      each->apply(step);
    }
    check_same(*moved, *kept);
  }
}

TEST_CASE("a gradient that has been computed moves with its elements") {
  auto program = program_with(optim::Adam());
  compute(*program, 0);
  auto before = program->bucket(layout::mesh_axis::dp, 1).clone();
  program->share_gradients([](shape extents, dtype type) { return tensor::zeros(std::move(extents), type); });
  auto after = program->bucket(layout::mesh_axis::dp, 1);
  CHECK(same_bits(before, after));
}

TEST_CASE("gradients that leave in another form stay where they are") {
  for (auto numerics : {numeric_options{.exchange = {.top_k_gradients = 0.1}},
                        numeric_options{.exchange = {.gradient_sync = dtype::bf16}}}) {
    auto program = program_with(optim::Adam(), numerics);
    bool is_asked = false;
    program->share_gradients([&](shape extents, dtype type) {
      is_asked = true;
      return tensor::empty(std::move(extents), type);
    });
    CHECK_FALSE(is_asked);
  }
}

TEST_CASE("gradients stay usable where there is no memory to share, and move when there is", "[host]") {
  auto moved = program_with(optim::Adam()), kept = program_with(optim::Adam());
  CHECK_THROWS_AS(moved->share_gradients([](const shape&, dtype) -> tensor { throw std::bad_alloc(); }),
                  std::bad_alloc);
  int num_blocks = 0;
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (auto* each : {moved.get(), kept.get()}) {
      compute(*each, step);
      take_sums(*each);
      each->apply(step);
    }
    check_same(*moved, *kept);
    moved->share_gradients([&](shape extents, dtype type) {
      ++num_blocks;
      return tensor::empty(std::move(extents), type);
    });
  }
  CHECK(num_blocks == 1);
}
