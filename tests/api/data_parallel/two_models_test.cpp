// A generator and a discriminator with an optimizer each, in a loop of one's own and over processes, against
// the values of torch 2.14.1 in f64 (optimizer.zero_grad() before each backward pass).
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <mutex>

#include "api/data_parallel/replicated_model.hpp"
#include "support/bits.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/optim/lamb.hpp"
#include "troupe/optim/sgd.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr int num_steps = 4, num_samples = 4;

tensor numbers(int rows, int columns, int seed) {
  auto values = tensor::zeros({rows, columns});
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      values.values<float>()[static_cast<std::size_t>(i * columns + j)] =
          static_cast<float>((i * 7 + j * 3 + seed * 5) % 11 - 5) / 8;
  return values;
}

nn::Sequential layers(int seed) {
  nn::Sequential model(nn::Linear(2, 4), nn::Tanh(), nn::Linear(4, 2));
  model.materialize(1);
  for (int layer : {0, 2}) {
    auto parameters = model[layer]->parameters();
    auto& weight = parameters[0]->value();
    auto& bias = parameters[1]->value();
    auto seed_of_layer = seed + layer / 2;
    weight.copy_from(
        numbers(static_cast<int>(weight.shape()[0]), static_cast<int>(weight.shape()[1]), seed_of_layer));
    for (auto& each : weight.values<float>()) each /= 2;
    for (int i = 0; i < bias.num_elements(); ++i)
      bias.values<float>()[static_cast<std::size_t>(i)] =
          static_cast<float>((i * 5 + seed_of_layer * 3) % 7 - 3) / 10;
    for (auto* each : parameters) each->mark_changed();
  }
  return model;
}

/// What keeps the generator's gradients out of the discriminator's step.
enum class keeping_apart {
  by_optimizers,         ///< zero_grad of the optimizer whose step comes
  by_modules,            ///< the same of its model
  by_freezing,           ///< the discriminator is frozen in the generator's step
  by_freezing_a_forward  ///< only while it computes what the generator's loss is computed from
};

struct outcome {
  std::vector<std::array<double, 2>> losses;  ///< of the discriminator and the generator, each step
  std::vector<named_tensor> generator, discriminator;
};

/// One process's part of the loop: how models compute, and how backward passes run.
struct loop {
  nn::Sequential& generator;
  nn::Sequential& discriminator;
  std::function<variable(const variable&)> generate, discriminate;
  std::function<void(const variable&)> generator_backward, discriminator_backward;
  optim::optimizer_state& generator_steps;
  optim::optimizer_state& discriminator_steps;
};

/// The mean loss of some of the samples, if all are `label`.
variable loss_of(const variable& scores, std::int64_t label) {
  auto rows = scores.value.shape()[0];
  auto labels = tensor::from(std::vector<std::int64_t>(static_cast<std::size_t>(rows), label), {rows});
  return nn::CrossEntropy()(scores, labels, 1.0 / static_cast<double>(rows)).loss;
}

/// Of the samples [first, first + count) of each batch.
std::vector<std::array<double, 2>> run(const loop& models, keeping_apart how, int first, int count) {
  std::vector<std::array<double, 2>> losses;
  auto zero_grad = [how](optim::optimizer_state& optimizer, nn::Module& model) {
    if (how == keeping_apart::by_optimizers) optimizer.zero_grad();
    if (how == keeping_apart::by_modules) model.zero_grad();
  };
  bool freezes = how == keeping_apart::by_freezing || how == keeping_apart::by_freezing_a_forward;
  for (int step = 0; step < num_steps; ++step) {
    auto noise = numbers(num_samples, 2, step + 7).rows(first, count);
    auto real = numbers(num_samples, 2, step + 20).rows(first, count).clone();
    for (auto& each : real.values<float>()) each += 1;

    zero_grad(models.discriminator_steps, models.discriminator);
    auto loss = add(loss_of(models.discriminate({real}), 1),
                    loss_of(models.discriminate(detach(models.generate({noise}))), 0));
    models.discriminator_backward(loss);
    models.discriminator_steps.apply(static_cast<std::uint64_t>(step));

    zero_grad(models.generator_steps, models.generator);
    if (freezes) models.discriminator.freeze();
    auto fooled = loss_of(models.discriminate(models.generate({noise})), 1);
    if (how == keeping_apart::by_freezing_a_forward) models.discriminator.requires_gradient();
    models.generator_backward(fooled);
    models.generator_steps.apply(static_cast<std::uint64_t>(step));
    if (how == keeping_apart::by_freezing) models.discriminator.requires_gradient();
    losses.push_back({loss.value.values<float>()[0], fooled.value.values<float>()[0]});
  }
  return losses;
}

outcome in_own_loop(keeping_apart how, const optim::Optimizer& kind) {
  auto generator = layers(1), discriminator = layers(3);
  auto generator_steps = kind(generator.named_parameters());
  auto discriminator_steps = kind(discriminator.named_parameters());
  loop models{generator,
              discriminator,
              [&](const variable& x) { return generator(x); },
              [&](const variable& x) { return discriminator(x); },
              [](const variable& loss) { loss.backward(); },
              [](const variable& loss) { loss.backward(); },
              *generator_steps,
              *discriminator_steps};
  auto losses = run(models, how, 0, num_samples);
  return {losses, generator.state_dict(), discriminator.state_dict()};
}

/// The mean losses of all members, and the weights of the first.
outcome in_parallel(int members, stepping mode, keeping_apart how, const optim::Optimizer& kind) {
  outcome result;
  result.losses.resize(num_steps);
  std::mutex adding;
  on_members(members, [&](communicator& group) {
    auto generator = layers(1), discriminator = layers(3);
    DataParallel generates(generator, group), discriminates(discriminator, group);
    auto generator_steps = optimizer_of(generates, mode, kind);
    auto discriminator_steps = optimizer_of(discriminates, mode, kind);
    loop models{generator,
                discriminator,
                [&](const variable& x) { return generates.forward(x); },
                [&](const variable& x) { return discriminates.forward(x); },
                [&](const variable& loss) { generates.backward(loss); },
                [&](const variable& loss) { discriminates.backward(loss); },
                *generator_steps,
                *discriminator_steps};
    auto count = num_samples / members;
    auto losses = run(models, how, group.rank() * count, count);
    std::lock_guard lock(adding);
    for (int step = 0; step < num_steps; ++step)
      for (std::size_t i : {0U, 1U})
        result.losses[static_cast<std::size_t>(step)][i] +=
            losses[static_cast<std::size_t>(step)][i] / members;
    if (group.rank() != 0) return;
    result.generator = copy_of(generator.state_dict());
    result.discriminator = copy_of(discriminator.state_dict());
  });
  return result;
}

/// What PyTorch computes.
struct expected_values {
  optim::Optimizer optimizer;
  std::vector<std::array<double, 2>> losses;
  std::vector<double> generator, discriminator;  ///< parameters, one after the other
};

const std::vector<expected_values>& of_pytorch() {
  static const std::vector<expected_values> values{
      {optim::SGD({.lr = 0.5}),
       {{1.523793989, 0.693624415},
        {1.396616770, 0.651741234},
        {1.339896907, 0.663454684},
        {1.302816196, 0.683783126}},
       {-0.0003132, 0.1882467,  -0.2499125, -0.0623220, 0.1880805, -0.3137093, -0.0626134, 0.1252006,
        0.0390288,  -0.1963574, 0.2790388,  0.1140382,  0.3140873, -0.2082971, 0.0289521,  0.1988300,
        0.0643334,  0.2302919,  -0.2229769, -0.0517525, 0.4057360, 0.1992058},
       {-0.1893167, -0.1026721, -0.2284091, 0.0447616,  0.1133294, 0.3160578,  -0.2689238, -0.2129862,
        -0.1050250, -0.3046944, 0.1603132,  0.0175432,  0.2749925, -0.0869610, -0.3560891, 0.2480646,
        -0.0249925, 0.0244610,  -0.0189109, -0.2480646, 0.1589940, 0.0410060}},
      {optim::Adam({.lr = 0.05}),
       {{1.523793989, 0.781083307},
        {1.442568307, 0.682053833},
        {1.366725103, 0.615849468},
        {1.337510526, 0.570623026}},
       {0.0677076, 0.2644840,  -0.1799447, -0.0410686, 0.1186745, -0.4066016, -0.0937348, 0.1050240,
        0.0490876, -0.3830976, 0.3505056,  0.2852535,  0.3676662, -0.2520360, 0.0589006,  0.2494879,
        0.1147202, 0.3094716,  -0.3120094, -0.1123993, 0.3606158, 0.0272566},
       {-0.2499700, -0.0703396, -0.1216248, 0.0709135,  -0.0510243, 0.1382570,  -0.3183076, -0.1357938,
        -0.2301358, -0.2297267, 0.0837423,  -0.1008874, 0.2409541,  -0.0707090, -0.2550519, 0.3085692,
        0.0090459,  0.0082090,  -0.1199481, -0.3085692, 0.0608142,  0.1391858}}};
  return values;
}

void check_close_to_pytorch(const std::vector<named_tensor>& found, const std::vector<double>& expected) {
  std::size_t next = 0;
  for (const auto& [name, value] : found)
    for (auto element : value.values<float>()) {
      CAPTURE(name, next);
      CHECK(std::abs(element - expected.at(next++)) < 2e-5);
    }
  CHECK(next == expected.size());
}

void check(const outcome& found, const expected_values& expected) {
  for (std::size_t step = 0; step < num_steps; ++step)
    for (std::size_t i : {0U, 1U}) CHECK(std::abs(found.losses[step][i] - expected.losses[step][i]) < 1e-5);
  check_close_to_pytorch(found.generator, expected.generator);
  check_close_to_pytorch(found.discriminator, expected.discriminator);
}

constexpr std::array all_ways{keeping_apart::by_optimizers, keeping_apart::by_modules,
                              keeping_apart::by_freezing, keeping_apart::by_freezing_a_forward};

}  // namespace

TEST_CASE("two models with an optimizer each train as in PyTorch, in every kind of loop") {
  for (const auto& expected : of_pytorch())
    for (auto how : all_ways) {
      CAPTURE(static_cast<int>(how));
      check(in_own_loop(how, expected.optimizer), expected);
      for (int members : {1, 2})
        for (auto mode : {stepping::together, stepping::overlapped})
          check(in_parallel(members, mode, how, expected.optimizer), expected);
    }
}

TEST_CASE("one process has the same bits in its own loop as with DataParallel") {
  for (auto how : all_ways)
    for (const optim::Optimizer& kind : {optim::Optimizer(optim::Adam()), optim::Optimizer(optim::LAMB())}) {
      auto own = in_own_loop(how, kind);
      for (auto mode : {stepping::together, stepping::overlapped}) {
        auto parallel = in_parallel(1, mode, how, kind);
        CHECK(same_bits(parallel.generator, own.generator));
        CHECK(same_bits(parallel.discriminator, own.discriminator));
      }
    }
}

TEST_CASE("zero_grad drops the gradients of a step that is not made, and no pending one") {
  for (auto mode : {stepping::together, stepping::overlapped})
    on_members(2, [&](communicator& group) {
      auto model = small_model(), other = small_model();
      DataParallel replicated(model, group), plain(other, group);
      auto optimizer = optimizer_of(replicated, mode, optim::SGD({.lr = 0.5}));
      auto expected = optimizer_of(plain, mode, optim::SGD({.lr = 0.5}));
      run_replicas(replicated, 0);
      optimizer->apply(0);
      optimizer->zero_grad();  // the step before is made all the same
      run_replicas(plain, 0);
      expected->apply(0);
      if (group.rank() == 0) CHECK(same_bits(model.state_dict()[0].value, other.state_dict()[0].value));
      run_replicas(replicated, 1);
      run_replicas(plain, 1);
      optimizer->zero_grad();
      optimizer->apply(1);  // nothing to step
      auto before = other.named_parameters()[0].target;
      before->wait_ready();
      optimizer->synchronize();
      if (group.rank() == 0) CHECK(same_bits(model.state_dict()[0].value, before->value()));
    });
}

TEST_CASE("an optimizer of one's own without zero_grad says what to call instead") {
  class without : public optim::optimizer_state {
   public:
    void apply(std::uint64_t) override {}
    std::vector<named_tensor> state() const override { return {}; }
  };
  CHECK_THROWS_WITH(without().zero_grad(), ContainsSubstring("call zero_grad() of the model"));
}

TEST_CASE("a parameter that is frozen after its model was wrapped is named, with what to do") {
  on_members(1, [&](communicator& group) {
    auto model = layers(1);
    DataParallel replicated(model, group);
    model[0]->freeze();
    auto loss = loss_of(replicated.forward({numbers(4, 2, 1)}), 1);
    auto told = error_of([&] { replicated.backward(loss); });
    CHECK_THAT(told,
               ContainsSubstring("0.weight was frozen after its model was wrapped: wrap the model again"));
  });
}
