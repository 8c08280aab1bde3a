// Metrics of one's own: what a model outputs for each sample, compared with the labels in any way.
#include <array>
#include <cstdint>
#include <iostream>
#include <troupe/troupe.hpp>
#include <vector>

using namespace troupe;

namespace {

constexpr std::size_t num_classes = 3;

/// Points [count, 2] in a square in rings around its middle: most are in the middle one.
labelled_samples make_rings(std::int64_t count) {
  std::vector<float> points;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto x = 2 * static_cast<float>(i * 7919 % count) / static_cast<float>(count) - 1;
    auto y = 2 * static_cast<float>(i * 104'729 % 2039) / 2039 - 1;
    points.insert(points.end(), {x, y});
    auto square = x * x + y * y;
    labels.push_back(square < 0.1F ? 0 : square < 1.2F ? 1 : 2);
  }
  return {tensor::from(points, {count, 2}), tensor::from(labels, {count})};
}

/// How many samples of each class the model takes for each class: [of the label][of the output].
struct confusion_matrix {
  std::array<std::array<std::int64_t, num_classes>, num_classes> counts{};

  /// The part of the samples of a class that the model finds.
  double recall(std::size_t of) const {
    std::int64_t all = 0;
    for (auto count : counts[of]) all += count;
    return all == 0 ? 0 : static_cast<double>(counts[of][of]) / static_cast<double>(all);
  }
  /// The part of what the model takes for a class that belongs to it.
  double precision(std::size_t of) const {
    std::int64_t all = 0;
    for (const auto& labelled : counts) all += labelled[of];
    return all == 0 ? 0 : static_cast<double>(counts[of][of]) / static_cast<double>(all);
  }
};

/// outputs: f32 [count, num_classes], a score for each class; labels: i64 [count].
confusion_matrix compare(const tensor& outputs, const tensor& labels) {
  confusion_matrix matrix;
  auto scores = outputs.values<float>();
  auto expected = labels.values<std::int64_t>();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::size_t found = 0;
    for (std::size_t k = 1; k < num_classes; ++k)
      if (scores[i * num_classes + k] > scores[i * num_classes + found]) found = k;
    ++matrix.counts[static_cast<std::size_t>(expected[i])][found];
  }
  return matrix;
}

void train(const job_options& options) {
  auto rings = make_rings(2048);
  auto samples = std::make_shared<dataset>(rings);
  nn::Sequential model(nn::Linear(2, 64), nn::ReLU(), nn::Linear(64, 64), nn::ReLU(),
                       nn::Linear(64, num_classes));
  auto world = World::init(options);
  Trainer trainer(world, Pipeline(model, options).optimizer(optim::Adam({.lr = options.learning_rate})));
  trainer.fit(samples);
  auto accuracy = trainer.evaluate(samples).accuracy;
  auto matrix = compare(trainer.predict(samples), rings.labels);
  if (world.rank() != 0) return;
  std::cout << "accuracy " << accuracy << '\n';
  for (std::size_t k = 0; k < num_classes; ++k)
    std::cout << "class " << k << "  recall " << matrix.recall(k) << "  precision " << matrix.precision(k)
              << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 64;
  defaults.epochs = 10;
  defaults.learning_rate = 5e-3;
  return run_program(argc, argv, defaults, train, {}, used_options::of_trainer());
}
