// A pipeline whose steps the program makes itself: it composes the batches, looks at the loss between the
// gradients and the update, and ends when it likes.
//   troupe launch --nproc-per-node 2 -- own_steps --lose 1
#include <csignal>
#include <iostream>
#include <troupe/config/environment/launch_environment.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// The batch of a step, the same in every process: points [size, 2] in a square, whose label says whether
/// they lie within a circle. Nobody needs to have all of them at once.
batch make_batch(std::uint64_t step, std::int64_t size) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < size; ++i) {
    auto number = static_cast<std::int64_t>(step) * size + i;
    auto x = static_cast<float>(number * 7919 % 2048) / 1024 - 1;
    auto y = static_cast<float>(number * 104'729 % 2039) / 1020 - 1;
    points.insert(points.end(), {x, y});
    labels.push_back(x * x + y * y < 0.6F);
  }
  return {tensor::from(points, {size, 2}), tensor::from(labels, {size})};
}

double accuracy_of(const tensor& outputs, const tensor& labels) {
  auto scores = outputs.values<float>();
  auto expected = labels.values<std::uint8_t>();
  int num_correct = 0;
  for (std::size_t row = 0; row < expected.size(); ++row)
    num_correct += (scores[2 * row + 1] > scores[2 * row]) == (expected[row] == 1);
  return static_cast<double>(num_correct) / static_cast<double>(expected.size());
}

void train(Trainer& trainer, const job_options& options, int lost_rank, int rank) {
  double mean_loss = 1;
  for (std::uint64_t step = 0; mean_loss > 0.2 && step < options.steps; ++step) {
    auto loss = trainer.forward_backward(make_batch(step, options.batch));  // all stages have gradients now
    mean_loss = 0.95 * mean_loss + 0.05 * loss;
    if (rank == lost_rank && step == 40) std::raise(SIGKILL);
    trainer.optimizer_step();  // now the weights have changed
  }
}

void run(const job_options& options, int lose) {
  auto launched = read_launch_environment(process_environment());
  bool is_first_life = !launched || launched->incarnation == 0;
  auto world = World::init(options);
  nn::Sequential model(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 2));
  auto pipeline = Pipeline(model, options).optimizer(optim::Adam({.lr = options.learning_rate}));
  Trainer trainer(world, pipeline);
  train(trainer, options, is_first_life ? lose : -1, world.rank());

  auto fresh = make_batch(options.steps, 64);
  auto accuracy = accuracy_of(trainer.forward({fresh.inputs, {}}), fresh.targets);
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0) std::cout << "accuracy " << accuracy << "  weights " << weights << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 64;
  defaults.steps = 1000;
  defaults.learning_rate = 1e-2;
  int lose = -1;
  return run_program(
      argc, argv, defaults, [&](const job_options& options) { run(options, lose); },
      {{"--lose", "the rank that kills itself within a step; -1: none", &lose}},
      used_options::of_trainer().without({"epochs", "trace_dir"}));
}
