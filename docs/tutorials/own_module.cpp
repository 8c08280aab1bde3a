// A module and a data set of one's own: a residual block with a learned scale learns which of two spirals a
// point lies on.
#include <cmath>
#include <iostream>
#include <troupe/nn/init.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// y = x + scale * relu(linear(norm(x))). x, y: [B, features]; scale: [1], 0 at first.
class ScaledResidual : public nn::module_of<ScaledResidual> {
 public:
  explicit ScaledResidual(std::int64_t features)
      : norm_(features), linear_(features, features), scale_("scale", {1}, nn::init::constant(0)) {}

  variable forward(const variable& x) override { return x + as_variable(scale_) * relu(linear_(norm_(x))); }
  void each_parameter(const parameter_visitor& visit) override { visit(scale_); }
  void each_child(const child_visitor& visit) override {
    visit("norm", norm_);
    visit("linear", linear_);
  }

 private:
  nn::LayerNorm norm_;
  nn::Linear linear_;
  parameter scale_;
};

/// Points [count, 2] on two spirals, and labels [count]: which of the two.
labelled_samples make_spirals(std::int64_t count) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto radius = static_cast<double>(i) / static_cast<double>(count);
    auto angle = 6 * radius + (i % 2 == 0 ? 0 : M_PI);
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
    labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return {tensor::from(points, {count, 2}), tensor::from(labels, {count})};
}

dataset_ptr spirals(std::int64_t count) {
  return std::make_shared<dataset>(shape{count, 2}, [count] { return make_spirals(count); });
}

void train(const job_options& options) {
  nn::Sequential model(nn::Linear(2, 32), ScaledResidual(32), ScaledResidual(32), nn::Linear(32, 2));
  auto pipeline =
      Pipeline(model, options).loss(nn::CrossEntropy()).optimizer(optim::Adam({.lr = options.learning_rate}));
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  auto samples = spirals(2048);
  auto fitted = trainer.fit(samples);
  auto accuracy = trainer.evaluate(samples).accuracy;
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0)
    std::cout << "steps " << fitted.steps << "\naccuracy " << accuracy << "\nweights " << weights << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 128;
  defaults.microbatches = 2;
  defaults.epochs = 20;
  defaults.learning_rate = 1e-2;
  return run_program(argc, argv, defaults, train, {}, used_options::of_trainer());
}
