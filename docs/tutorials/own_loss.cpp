// Losses of one's own: one made of recorded operations, and one with a gradient of its own. A small network
// learns a curve from points of which some are far off.
#include <cmath>
#include <iostream>
#include <troupe/ops/elementwise.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// |prediction - target|, summed; both [B, 1]. The recorded operations know its gradient.
loss_result absolute_error(const variable& prediction, const tensor& target, double gradient_scale) {
  auto total = sum(abs(prediction - variable{target}));
  return {.loss = multiply(total, static_cast<float>(gradient_scale)),
          .loss_sum = total.value.values<float>()[0],
          .num_counted = target.num_elements()};
}

/// The operation behind `huber`: it keeps what its backward pass needs.
class huber_operation : public operation {
 public:
  explicit huber_operation(tensor gradient) : gradient_(std::move(gradient)) {}
  std::vector<tensor> backward_input(const tensor& dy) override { return {multiply(gradient_, dy)}; }

 private:
  tensor gradient_;
};

/// Huber 1964, with d = prediction - target and c = d clipped to [-delta, delta]: the sum of c (d - c / 2),
/// whose gradient is c. That is d^2 / 2 where |d| <= delta, and grows as |d| beyond.
loss_result huber(const variable& prediction, const tensor& target, double gradient_scale) {
  constexpr float delta = 0.1F;
  auto scale = static_cast<float>(gradient_scale);
  auto d = subtract(prediction.value, target);
  auto c = clamp(d, -delta, delta);
  auto total = sum(multiply(c, subtract(d, multiply(c, 0.5F))));
  return {.loss = record(multiply(total, scale), {prediction},
                         std::make_unique<huber_operation>(multiply(c, scale))),
          .loss_sum = total.values<float>()[0],
          .num_counted = target.num_elements()};
}

nn::Loss loss_named(const std::string& name) {
  if (name == "absolute") return absolute_error;
  if (name == "huber") return huber;
  throw bad_input("--loss " + name + ": expected absolute or huber");
}

/// y = sin(3 x) at `count` points x in [-1, 1]; every `wrong`th is 3 too high, none if 0.
dataset_ptr curve(std::int64_t count, std::int64_t wrong) {
  std::vector<float> xs, ys;
  for (std::int64_t i = 0; i < count; ++i) {
    auto x = 2 * static_cast<float>(i) / static_cast<float>(count) - 1;
    xs.push_back(x);
    ys.push_back(std::sin(3 * x) + (wrong > 0 && i % wrong == 0 ? 3.0F : 0.0F));
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(xs, {count, 1}), tensor::from(ys, {count, 1})});
}

void train(const job_options& options, const nn::Loss& loss) {
  nn::Sequential model(nn::Linear(1, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh(), nn::Linear(32, 1));
  auto pipeline = Pipeline(model, options).loss(loss).optimizer(optim::Adam({.lr = options.learning_rate}));
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  trainer.fit(curve(1024, 10));
  auto evaluation = trainer.evaluate(curve(500, 0));
  if (world.rank() == 0) std::cout << "loss without wrong points " << evaluation.loss << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 64;
  defaults.epochs = 60;
  defaults.learning_rate = 5e-3;
  std::string loss = "huber";
  return run_program(
      argc, argv, defaults, [&](const job_options& options) { train(options, loss_named(loss)); },
      {{"--loss", "absolute or huber", &loss}}, used_options::of_trainer());
}
