// Samples without a label: the metrics are over those that have one, and a step is that of PyTorch on the
// full batch, however the batch is cut into microbatches, replicas and stages.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "support/bits.hpp"
#include "support/models/partly_labelled.hpp"
#include "troupe/ops/elementwise.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinAbs;

namespace {

constexpr int num_samples = 64;
constexpr std::uint64_t num_labelled_steps = 6;
constexpr double tolerance = 1e-5;  // six steps of f32

nn::Sequential small_layers() {
  return nn::Sequential(nn::Linear(2, 8), nn::ReLU(), nn::Linear(8, 8), nn::ReLU(), nn::Linear(8, 4));
}

std::vector<named_tensor> first_weights() {
  auto waves = [](shape extents) {
    auto values = tensor::empty(std::move(extents));
    for (std::size_t k = 0; k < values.values<float>().size(); ++k)
      values.values<float>()[k] = static_cast<float>(std::sin(static_cast<double>(k + 1)) / 2);
    return values;
  };
  return {{"0.bias", waves({8})},      {"0.weight", waves({8, 2})}, {"2.bias", waves({8})},
          {"2.weight", waves({8, 8})}, {"4.bias", waves({4})},      {"4.weight", waves({4, 8})}};
}

struct labelled_training {
  std::vector<double> losses;
  std::vector<named_tensor> weights;
  double first_accuracy = 0;
};

/// What pytorch_values/ignored_labels.py has written.
labelled_training pytorch_values() {
  labelled_training values;
  std::ifstream file(PYTORCH_VALUES "/ignored_labels.txt");
  std::string line;
  for (std::uint64_t step = 0; step < num_labelled_steps && std::getline(file, line); ++step) {
    std::istringstream numbers(line);
    double accuracy = 0;
    numbers >> values.losses.emplace_back() >> accuracy;
    if (step == 0) values.first_accuracy = accuracy;
  }
  for (const auto& each : first_weights()) {
    std::getline(file, line);
    std::istringstream numbers(line);
    std::string name;
    numbers >> name;
    REQUIRE(name == each.name);
    auto value = tensor::empty(each.value.shape());
    for (auto& element : value.values<float>()) numbers >> element;
    REQUIRE(numbers);
    values.weights.push_back({name, value});
  }
  return values;
}

struct labelled_layout {
  int microbatches = 1, replicas = 1, stages = 1, devices = 1;
};

Pipeline labelled_pipeline(const labelled_layout& of) {
  return Pipeline(small_layers())
      .microbatches(of.microbatches)
      .replicas(of.replicas)
      .stages(of.stages)
      .initial_weights(first_weights())
      .optimizer(optim::SGD({.lr = 0.5}));
}

job_options whole_batches(std::uint64_t steps) {
  auto options = small_options();
  options.batch = num_samples;
  options.steps = steps;
  return options;
}

labelled_training train_labelled(const labelled_layout& of, Pipeline pipeline) {
  labelled_training seen;
  Trainer trainer(World::local(of.devices, whole_batches(num_labelled_steps)), std::move(pipeline),
                  {.on_step = [&](const step_event& done) { seen.losses.push_back(done.loss); }});
  trainer.fit(partly_labelled(num_samples));
  seen.weights = trainer.state_dict();
  return seen;
}

void check_close(const labelled_training& seen, const labelled_training& expected) {
  REQUIRE(seen.losses.size() == expected.losses.size());
  for (std::size_t step = 0; step < seen.losses.size(); ++step)
    CHECK_THAT(seen.losses[step], WithinAbs(expected.losses[step], tolerance));
  for (std::size_t i = 0; i < expected.weights.size(); ++i) {
    auto ours = seen.weights[i].value.values<float>(), theirs = expected.weights[i].value.values<float>();
    for (std::size_t k = 0; k < theirs.size(); ++k) CHECK_THAT(ours[k], WithinAbs(theirs[k], tolerance));
  }
}

double largest_difference(const std::vector<named_tensor>& a, const std::vector<named_tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a[i].value.values<float>().size(); ++k)
      largest =
          std::max(largest, std::abs(double{a[i].value.values<float>()[k]} - b[i].value.values<float>()[k]));
  return largest;
}

}  // namespace

TEST_CASE(
    "a step with ignored labels is PyTorch's on the full batch, for any microbatches, replicas and stages") {
  auto expected = pytorch_values();
  for (int microbatches : {1, 2, 16})
    for (int replicas : {1, 2, 4}) {
      CAPTURE(microbatches, replicas);
      auto whole = labelled_layout{microbatches, replicas};
      auto seen = train_labelled(whole, labelled_pipeline(whole));
      check_close(seen, expected);
      for (int stages : {2, 3}) {
        auto cut = labelled_layout{microbatches, replicas, stages, replicas * stages};
        auto again = train_labelled(cut, labelled_pipeline(cut));
        CHECK(same_bits(again.weights, seen.weights));
        CHECK(again.losses == seen.losses);
      }
    }
}

TEST_CASE("an evaluation counts the samples that have a label") {
  auto samples = partly_labelled(num_samples);
  std::int64_t counted = 0;
  for (auto label : samples->labels().values<std::int64_t>()) counted += label != -100 ? 1 : 0;
  Trainer trainer(World::local(2, whole_batches(1)), labelled_pipeline({.microbatches = 4, .stages = 2}));
  auto evaluated = trainer.evaluate(samples);
  CHECK(evaluated.num_samples == counted);
  CHECK_THAT(evaluated.loss, WithinAbs(pytorch_values().losses.front(), tolerance));
  CHECK_THAT(evaluated.accuracy, WithinAbs(pytorch_values().first_accuracy, tolerance));
}

TEST_CASE("replicas that average their weights take each the mean over its own labels") {
  auto averaged = labelled_layout{2, 2, 2, 4}, whole = labelled_layout{2, 2};
  auto cut = labelled_pipeline(averaged), uncut = labelled_pipeline(whole);
  auto seen = train_labelled(averaged, std::move(cut.average_every(2)));
  CHECK(same_bits(seen.weights, train_labelled(whole, std::move(uncut.average_every(2))).weights));
  for (auto loss : seen.losses) CHECK(std::isfinite(loss));
}

TEST_CASE("steps between two flushes take each the mean over its own labels") {
  auto flushed = [](const labelled_layout& of) {
    auto pipeline = labelled_pipeline(of).schedule(schedule_kind::pipedream_2bw).flush_every(2);
    auto options = whole_batches(num_labelled_steps);
    options.batch = num_samples / 2;
    Trainer trainer(World::local(of.devices, options), std::move(pipeline));
    trainer.fit(partly_labelled(num_samples));
    return trainer.state_dict();
  };
  auto whole = flushed({2});
  CHECK(same_bits(flushed({2, 1, 3, 3}), whole));
  // The same steps, but for the version of the weights, whatever the number of microbatches.
  auto many = flushed({16});
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(largest_difference({whole[i]}, {many[i]}) < tolerance);
}

TEST_CASE("a batch of which no label counts moves no weight, not even by momentum or decay") {
  auto points = four_corners(num_samples);
  auto none = std::make_shared<dataset>(labelled_samples{
      points->samples(), tensor::from(std::vector<std::int64_t>(num_samples, -100), {num_samples})});
  for (const auto& of : {labelled_layout{2, 1, 1, 1}, labelled_layout{2, 1, 3, 3},
                         labelled_layout{4, 2, 2, 4}, labelled_layout{2, 2, 3, 6}}) {
    CAPTURE(of.replicas, of.stages);
    auto pipeline = labelled_pipeline(of).optimizer(optim::AdamW({.lr = 0.1, .weight_decay = 0.1}));
    std::vector<double> losses;
    auto options = whole_batches(0);
    options.epochs = 2;
    Trainer trainer(World::local(of.devices, options), std::move(pipeline),
                    {.on_step = [&](const step_event& done) { losses.push_back(done.loss); }});
    trainer.fit(points);
    auto before = trainer.state_dict();
    trainer.fit(none);
    CHECK(same_bits(trainer.state_dict(), before));
    CHECK(losses.size() == 4);
    CHECK(std::isfinite(losses.back()));
  }
}

namespace {

/// The squared distance of points: counts points, not coordinates.
loss_result squared_distance(const variable& output, const tensor& target, double gradient_scale) {
  auto all = nn::MSELoss()(output, target, gradient_scale);
  all.num_counted = target.shape()[0];
  return all;
}

/// The same over the points whose first coordinate is positive.
loss_result of_positive(const variable& output, const tensor& target, double gradient_scale) {
  auto weights = tensor::zeros(target.shape());
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < target.shape()[0]; ++row)
    if (target.rows(row, 1).values<float>()[0] > 0) {
      weights.rows(row, 1).copy_from(tensor::full({1, 2}, 1));
      ++counted;
    }
  auto mask = variable{weights, nullptr};
  auto all = nn::MSELoss()(multiply(output, mask), multiply(target, weights), gradient_scale);
  all.num_counted = counted;
  return all;
}

std::int64_t num_positive(const tensor& target) {
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < target.shape()[0]; ++row)
    counted += target.rows(row, 1).values<float>()[0] > 0 ? 1 : 0;
  return counted;
}

dataset_ptr autoencoded() {
  auto points = four_corners(num_samples);
  return std::make_shared<dataset>(labelled_samples{points->samples(), points->samples()});
}

std::vector<named_tensor> autoencode(const nn::Loss& loss, int microbatches,
                                     std::int64_t* counted = nullptr) {
  auto pipeline = Pipeline(nn::Sequential(nn::Linear(2, 2)))
                      .microbatches(microbatches)
                      .loss(loss)
                      .optimizer(optim::SGD({.lr = 0.1}));
  Trainer trainer(World::local(1, whole_batches(2)), std::move(pipeline));
  trainer.fit(autoencoded());
  if (counted) *counted = trainer.evaluate(autoencoded()).num_samples;
  return trainer.state_dict();
}

}  // namespace

TEST_CASE("a loss of one's own counts as it says: the metrics and the step are means over that") {
  std::int64_t counted = 0;
  auto whole = autoencode(squared_distance, 1, &counted);
  CHECK(counted == num_samples);
  CHECK(largest_difference(autoencode(squared_distance, 8), whole) < tolerance);
  // Per coordinate the same loss is half as large.
  CHECK(largest_difference(autoencode(nn::MSELoss(), 1), whole) > 100 * tolerance);

  auto positive = autoencode(nn::Loss(of_positive, num_positive), 1, &counted);
  CHECK(counted == num_positive(autoencoded()->labels()));
  CHECK(largest_difference(autoencode(nn::Loss(of_positive, num_positive), 16), positive) < tolerance);
}

TEST_CASE("a loss whose count depends on the targets must tell it before") {
  CHECK_THROWS_MATCHES(autoencode(of_positive, 16), job_failed,
                       MessageMatches(ContainsSubstring("num_counted") &&
                                      ContainsSubstring("nn::Loss(function, num_counted)")));
  auto wrong = nn::Loss(of_positive, [](const tensor& target) { return target.shape()[0]; });
  CHECK_THROWS_MATCHES(autoencode(wrong, 2), job_failed,
                       MessageMatches(ContainsSubstring("both must count alike")));
  auto silent = [](const variable& output, const tensor& target, double gradient_scale) {
    auto all = nn::MSELoss()(output, target, gradient_scale);
    all.num_counted = 0;
    return all;
  };
  CHECK_THROWS_MATCHES(autoencode(silent, 2), job_failed, MessageMatches(ContainsSubstring("fill it in")));
}

TEST_CASE("a loss that counts another constant number in each replica must tell it before") {
  // The first half of each batch, that of replica 0, has 32 positive points, the second half 8.
  auto step_with = [](const nn::Loss& loss, int replicas) {
    auto points = tensor::full({num_samples, 2}, 0.5);
    for (std::int64_t row = num_samples / 2; row < num_samples * 7 / 8; ++row)
      points.rows(row, 1).copy_from(tensor::full({1, 2}, -0.5));
    auto pipeline = Pipeline(nn::Sequential(nn::Linear(2, 2)))
                        .microbatches(1)
                        .replicas(replicas)
                        .loss(loss)
                        .optimizer(optim::SGD({.lr = 0.1}));
    Trainer trainer(World::local(replicas, whole_batches(2)), std::move(pipeline));
    trainer.forward_backward({points, points});
    trainer.optimizer_step();
    return trainer.state_dict();
  };
  CHECK_THROWS_MATCHES(step_with(of_positive, 2), job_failed,
                       MessageMatches(ContainsSubstring("in each microbatch of all replicas") &&
                                      ContainsSubstring("nn::Loss(function, num_counted)")));
  auto whole = step_with(of_positive, 1);
  CHECK(largest_difference(step_with(nn::Loss(of_positive, num_positive), 2), whole) < tolerance);
  CHECK_NOTHROW(step_with(squared_distance, 2));
}
