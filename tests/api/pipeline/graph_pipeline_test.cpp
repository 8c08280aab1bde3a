// Graphs cut into stages: every cut, schedule and placement gives the bits of the uncut model.
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>

#include "api/pipeline/drawn_graphs.hpp"
#include "api/pipeline/planned_pipeline.hpp"
#include "support/bits.hpp"
#include "support/random_tensor.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/embedding.hpp"
#include "troupe/nn/tied_linear.hpp"
#include "troupe/pipeline/pipeline.hpp"
#include "troupe/schedule/text/plan_text.hpp"

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr int num_labels = 3;
constexpr std::int64_t batch_size = 12;

batch samples_of(std::uint64_t step, std::int64_t features) {
  std::vector<std::int64_t> classes;
  for (std::int64_t row = 0; row < batch_size; ++row)
    classes.push_back((row * row + static_cast<std::int64_t>(step)) % num_labels);
  return {random_tensor({batch_size, features}, std::to_string(step)), tensor::from(classes, {batch_size})};
}

struct outcome {
  std::vector<named_tensor> weights;
  std::vector<tensor> predictions;
  program::step_metrics metrics;

  bool operator==(const outcome& other) const {
    return same_bits(weights, other.weights) && metrics == other.metrics &&
           std::ranges::equal(predictions, other.predictions,
                              [](const tensor& a, const tensor& b) { return same_bits(a, b); });
  }
};

outcome trained(const nn::Graph& model, const planned_options& options, std::int64_t features) {
  planned_pipeline pipeline(model, options);
  for (std::uint64_t step = 0; step < 3; ++step) pipeline.train(step, samples_of(step, features));
  auto metrics = pipeline.take_metrics();
  return {pipeline.weights(), pipeline.predict(samples_of(9, features)), metrics};
}

/// Up to five stages that begin anywhere.
std::vector<stage_range> drawn_partition(const nn::Graph& model, std::mt19937& random) {
  for (;;) {
    std::vector<int> cuts;
    for (int left = drawn_number(5, random); left-- > 0;)
      cuts.push_back(1 + drawn_number(model.size() - 1, random));
    std::ranges::sort(cuts);
    cuts.erase(std::ranges::unique(cuts).begin(), cuts.end());
    std::vector<std::string> names;
    for (auto cut : cuts) names.push_back(model.name_of(cut));
    try {
      return partition_at(model, names);
    } catch (const bad_input&) {
      // A stage without parameters.
    }
  }
}

planned_options drawn_options(const nn::Graph& model, int num_microbatches, std::mt19937& random) {
  planned_options options{.partition = drawn_partition(model, random), .num_microbatches = num_microbatches};
  auto num_stages = static_cast<int>(options.partition.size());
  if (num_stages % 2 == 0 && drawn_number(2, random) == 0) {
    bool is_interleaved = num_microbatches % 2 == 0 && drawn_number(2, random) == 0;
    options.kind = is_interleaved ? schedule_kind::interleaved_1f1b : schedule_kind::zb_v;
    options.num_devices = is_interleaved ? 2 : num_stages / 2;
    return options;
  }
  constexpr std::array kinds = {schedule_kind::gpipe, schedule_kind::one_f_one_b, schedule_kind::zb_h1,
                                schedule_kind::zb_h2};
  options.kind = kinds[static_cast<std::size_t>(drawn_number(4, random))];
  options.num_devices = 1 + drawn_number(std::min(3, num_stages), random);
  for (int stage = 0; stage < num_stages; ++stage)
    options.device_of_stage.push_back(
        stage < options.num_devices ? stage : drawn_number(options.num_devices, random));
  std::ranges::shuffle(options.device_of_stage, random);
  return options;
}

std::string edges_of(const detail::model_cut& cut) {
  std::string text;
  for (const auto& each : cut.edges) text += (text.empty() ? "" : ", ") + to_string(each);
  return text;
}

/// All uses of one value: in its own stage, twice in the middle, and at the end.
nn::Graph value_of_many_uses() {
  nn::Graph model;
  auto v = model.add("v", nn::Linear(6, 6), model.input());
  auto x = model.add("own", Gated(6), v);
  for (std::string name : {"a", "b", "c"}) {
    auto y = model.add(name + "1", Gated(6), v);
    x = model.add(name + "2", nn::Add(), x, y, v, v);
    x = model.add(name + "3", nn::Linear(6, 6), x);
  }
  model.output(model.add("head", nn::Linear(6, num_labels), model.add("sum", nn::Add(), x, v)));
  return model;
}

/// Uses of two outputs in turn.
nn::Graph outputs_used_in_turn() {
  nn::Graph model;
  auto twins = model.add("twins", Twins(6), model.input());
  auto x = model.add("first", Gated(6), twins[0]);
  for (int i = 1; i < 5; ++i) {
    auto name = std::to_string(i);
    x = model.add("sum" + name, nn::Add(), x, model.add("gated" + name, Gated(6), twins[i % 2]));
  }
  model.output(model.add("head", nn::Linear(6, num_labels), x));
  return model;
}

void check_all_cuts(const nn::Graph& model, std::int64_t features, int num_draws, unsigned seed) {
  std::mt19937 random(seed);
  auto whole = trained(model, {.partition = {{0, model.size()}}, .num_microbatches = 3}, features);
  for (int draw = 0; draw < num_draws; ++draw) {
    auto options = drawn_options(model, 3, random);
    CAPTURE(draw, schedule::plan_text(planned_pipeline(model, options).training()));
    REQUIRE(trained(model, options, features) == whole);
  }
}

}  // namespace

TEST_CASE("drawn graphs give the same bits for drawn cuts, schedules and devices") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    drawn_graph drawn(num_labels, random);
    auto microbatches = 1 + drawn_number(4, random);
    if (microbatches == 4) microbatches = 6;
    numeric_options numerics;
    if (drawn_number(3, random) == 0) numerics.clip_grad_norm = 0.5;
    if (drawn_number(4, random) == 0) numerics.precision = dtype::bf16;
    auto whole = trained(
        drawn.model(),
        {.partition = {{0, drawn.model().size()}}, .num_microbatches = microbatches, .numerics = numerics},
        6);
    for (int draw = 0; draw < 4; ++draw) {
      auto options = drawn_options(drawn.model(), microbatches, random);
      options.numerics = numerics;
      CAPTURE(seed, draw, schedule::plan_text(planned_pipeline(drawn.model(), options).training()));
      REQUIRE(trained(drawn.model(), options, 6) == whole);
    }
  }
}

TEST_CASE("residual networks and U-Nets give the same bits for every cut") {
  check_all_cuts(residual_network(num_labels), 36, 12, 1);
  check_all_cuts(small_unet(num_labels), 64, 12, 2);
}

TEST_CASE("the gradient of a value is added use by use, wherever its uses are") {
  check_all_cuts(value_of_many_uses(), 6, 30, 3);
  check_all_cuts(outputs_used_in_turn(), 6, 30, 6);
}

TEST_CASE("one microbatch in a pipeline steps as the plain graph does") {
  auto model = residual_network(num_labels);
  planned_pipeline pipeline(model, {.partition = partition_into_stages(model, 3)});
  auto samples = samples_of(0, 36);
  pipeline.train(0, samples);
  model.materialize(42);
  model.to(device_under_test());
  auto optimizer = optim::Adam({.lr = 0.01})(model.named_parameters());
  cross_entropy(model({placed(samples.inputs)}), placed(samples.targets), 1.0 / batch_size).loss.backward();
  optimizer->apply(0);
  auto plain = model.state_dict();
  std::ranges::sort(plain, {}, &named_tensor::name);
  CHECK(same_bits(pipeline.weights(), plain));
}

TEST_CASE("tied weights are trained alike in stages apart") {
  nn::Graph model;
  auto embedded = model.add("embed", nn::Linear(4, 6), model.input());
  auto a = model.add("a", nn::Linear(6, 6), embedded), b = model.add("b", Gated(6), embedded);
  auto back = model.add("back", nn::TiedLinear(6, 6, "a.weight"), model.add("sum", nn::Add(), a, b));
  model.output(model.add("head", nn::Linear(6, num_labels), back));
  check_all_cuts(model, 4, 10, 4);
}

TEST_CASE("edges lead from the stage that computes a value to those that use it, past others", "[host]") {
  auto model = small_unet(num_labels);
  auto cut = detail::cut_model(model.wiring(), partition_at(model, {"down2", "bottom", "grow2", "grow1"}));
  CHECK(edges_of(cut) == "0.0 -> 4.0, 0.1 -> 1.0, 1.0 -> 3.0, 1.1 -> 2.0, 2.0 -> 3.1, 3.0 -> 4.1");
  CHECK(cut.stages[0].takes_samples);
  CHECK(cut.stages[4].outputs == model.wiring().outputs);

  // The last stage that uses v adds up its uses; the one before it, which uses it three times, has a port for
  // each.
  auto many = value_of_many_uses();
  cut = detail::cut_model(many.wiring(), partition_at(many, {"a1", "b1"}));
  CHECK(edges_of(cut) == "0.0 -> 1.0, 0.0 -> 1.1, 0.0 -> 1.2, 0.0 -> 2.0, 0.1 -> 1.3, 1.0 -> 2.1");
}

TEST_CASE("a stage that uses only the samples takes them itself; another one gets them over an edge") {
  nn::Graph model;
  auto x = model.input();
  auto a = model.add("a", nn::Linear(6, 6), x);
  auto b = model.add("b", nn::Linear(6, 6), x);
  auto c = model.add("c", nn::Linear(6, 6), model.add("sum", nn::Add(), a, x));
  model.output(model.add("head", nn::Linear(6, num_labels), model.add("all", nn::Add(), b, c)));
  auto cut = detail::cut_model(model.wiring(), partition_at(model, {"b", "sum"}));
  CHECK(cut.stages[1].takes_samples);
  CHECK_FALSE(cut.stages[2].takes_samples);
  CHECK(edges_of(cut) == "0.0 -> 2.0, 0.1 -> 2.1, 1.0 -> 2.2");
  check_all_cuts(model, 6, 20, 5);
}

TEST_CASE("integers pass between stages, and have no gradients") {
  nn::Graph model;
  auto tokens = model.input();
  auto a = model.add("a", nn::Embedding(5, 6), tokens);
  auto b = model.add("b", nn::Linear(6, 6), a);
  auto c = model.add("c", nn::Embedding(5, 6), tokens);
  model.output(model.add("head", nn::Linear(6, num_labels), model.add("sum", nn::Multiply(), b, c)));
  auto train = [&](std::vector<stage_range> partition) {
    planned_pipeline pipeline(model, {.partition = std::move(partition), .num_microbatches = 2});
    for (std::uint64_t step = 0; step < 2; ++step) {
      auto samples = samples_of(step, 1);
      std::vector<std::int64_t> drawn;
      for (std::int64_t row = 0; row < batch_size; ++row) drawn.push_back((row + 2) % 5);
      samples.inputs = tensor::from(drawn, {batch_size});
      pipeline.train(step, samples);
    }
    return pipeline.weights();
  };
  auto whole = train({{0, model.size()}});
  for (const auto& names : std::vector<std::vector<std::string>>{{"b"}, {"c"}, {"b", "c"}, {"head"}})
    CHECK(same_bits(train(partition_at(model, names)), whole));
}

TEST_CASE("cuts that cannot be are refused with what to do", "[host]") {
  auto model = residual_network(num_labels);
  auto expect = [&](const std::vector<std::string>& names, auto... parts) {
    CHECK_THROWS_MATCHES(Pipeline(model).cut_before(names), bad_input,
                         MessageMatches((ContainsSubstring("stage") && ... && ContainsSubstring(parts))));
  };
  expect({"block3"}, "'block3', which the model does not have", "block1.conv1", "head");
  expect({"head", "stem"}, "'stem'", "begins with 'head'", "in the order");
  expect({"stem", "stem"}, "each once");
  expect({"image"}, "without the first");
  expect({"pool", "head"}, "the stage of pool, flat would have no parameters", "begin earlier or end later");
  expect({"stem"}, "the stage of image");
  CHECK_THROWS_AS(Pipeline(model).partition(20), bad_input);
}

TEST_CASE("a pipeline takes graphs with one input and one output", "[host]") {
  nn::Graph two;
  auto sum = two.add("sum", nn::Add(), two.input("a"), two.input("b"));
  two.output(sum);
  CHECK_THROWS_MATCHES(Pipeline(two), std::invalid_argument,
                       MessageMatches(ContainsSubstring("one input and one output, got 2 and 1")));
  nn::Graph incomplete;
  incomplete.input();
  CHECK_THROWS_MATCHES(Pipeline(incomplete), std::invalid_argument,
                       MessageMatches(ContainsSubstring("got 1 and 0: call output()")));
}

TEST_CASE("named cuts are the pipeline's stages until a number is given", "[host]") {
  Pipeline pipeline(nn::Sequential(nn::Linear(6, 6), nn::ReLU(), nn::Linear(6, 6), nn::Linear(6, 3)));
  pipeline.cut_before({"3"});
  CHECK(pipeline.stages() == 2);
  CHECK(pipeline.cuts_text() == "3");
  CHECK(pipeline.partition(2) == std::vector<stage_range>{{0, 3}, {3, 4}});
  pipeline.stages(3);
  CHECK(pipeline.cuts_text().empty());
  CHECK(pipeline.partition(3).size() == 3);
}
