// Data augmentation: a layer that shifts images by a random pixel in training, the same one in every run.
#include <array>
#include <cstdint>
#include <iostream>
#include <troupe/random/philox.hpp>
#include <troupe/troupe.hpp>
#include <vector>

using namespace troupe;

namespace {

constexpr std::int64_t side = 8;

/// Moves each image by -1, 0 or 1 pixels along both axes, in training mode. x, y: f32 [B, 1, side, side].
class RandomShift : public nn::module_of<RandomShift> {
 public:
  variable forward(const variable& x) override {
    if (!is_training()) return x;
    auto id = next_pass_id();
    philox_stream random(seed_, random_purpose::activations, {id.step, id.microbatch, 0});
    auto shifted = tensor::zeros(x.value.shape());
    for (std::int64_t sample = 0; sample < x.value.shape()[0]; ++sample) {
      auto words = random.block(static_cast<std::uint32_t>(sample));
      shift(x.value.rows(sample, 1), shifted.rows(sample, 1), words[0] % 3 - 1L, words[1] % 3 - 1L);
    }
    return {shifted};
  }

 protected:
  void on_materialize(std::uint64_t seed, const std::string&) override { seed_ = seed; }

 private:
  static void shift(const tensor& from, tensor to, std::int64_t down, std::int64_t right) {
    auto source = from.values<float>();
    auto target = to.values<float>();
    for (std::int64_t row = 0; row < side; ++row)
      for (std::int64_t column = 0; column < side; ++column) {
        auto old_row = row - down, old_column = column - right;
        if (old_row < 0 || old_row >= side || old_column < 0 || old_column >= side) continue;
        target[static_cast<std::size_t>(row * side + column)] =
            source[static_cast<std::size_t>(old_row * side + old_column)];
      }
  }

  std::uint64_t seed_ = 0;
};

/// Images [count, 1, side, side] of a bar, and whether it is upright [count].
labelled_samples make_bars(std::int64_t count) {
  auto images = tensor::zeros({count, 1, side, side});
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto pixels = images.rows(i, 1).values<float>();
    auto at = 2 + i / 2 % 4;
    for (std::int64_t k = 0; k < side; ++k)
      pixels[static_cast<std::size_t>(i % 2 == 0 ? at * side + k : k * side + at)] = 1;
    labels.push_back(i % 2);
  }
  return {images, tensor::from(labels, {count})};
}

void train(const job_options& options) {
  nn::Sequential model(RandomShift(), nn::Flatten(), nn::Linear(side * side, 16), nn::ReLU(),
                       nn::Linear(16, 2));
  auto bars = std::make_shared<dataset>(make_bars(256));
  auto world = World::init(options);
  Trainer trainer(world, Pipeline(model, options).optimizer(optim::Adam({.lr = options.learning_rate})));
  trainer.fit(bars);
  auto accuracy = trainer.evaluate(bars).accuracy;
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0) std::cout << "accuracy " << accuracy << "  weights " << weights << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 32;
  defaults.microbatches = 4;
  defaults.epochs = 8;
  defaults.learning_rate = 1e-2;
  return run_program(argc, argv, defaults, train, {}, used_options::of_trainer());
}
