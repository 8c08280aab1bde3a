// A classifier of made-up points, trained by every process on its own part of the data, in a loop of one's
// own. Four virtual replicas give the same losses and weights to the bit in this process, with one in each of
// four, or two in the first of three:
//
//     data_parallel
//     troupe launch --nproc-per-node 3 -- data_parallel
//     troupe launch --nproc-per-node 4 -- data_parallel
//
// With `--backend gloo` or `mpi` the losses are the same but for rounding.
#include <troupe/troupe.hpp>

#include <cstdio>
#include <troupe/collective/every_backend.hpp>

using namespace troupe;

namespace {

constexpr int num_replicas = 4;
constexpr std::int64_t batch = 32;  // of each replica

/// Points [N, 2] in the unit square, and whether they lie within a circle.
dataset_ptr make_points() {
  constexpr std::int64_t count = 2048;
  std::vector<float> points;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto x = static_cast<float>(i * 7919 % count) / count, y = static_cast<float>(i * 104729 % 2039) / 2039;
    points.insert(points.end(), {x, y});
    labels.push_back((x - 0.5F) * (x - 0.5F) + (y - 0.5F) * (y - 0.5F) < 0.16F);
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

void train(const job_options& options) {
  auto world = World::init(options, every_backend());
  nn::Sequential model(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 2));
  model.materialize(options.seed);
  DataParallel replicated(model, world, {.num_replicas = num_replicas});
  auto optimizer = replicated.make_optimizer(optim::Adam({.lr = options.learning_rate}));

  auto points = make_points();
  std::vector<DataLoader> loaders;  // one for each replica of this process
  for (int replica : replicated.own_replicas())
    loaders.emplace_back(
        points, data_loader_options{
                    .batch = batch, .num_replicas = num_replicas, .replica = replica, .seed = options.seed});
  auto num_steps = points->num_samples() / num_replicas / batch;
  for (int epoch = 1; epoch <= options.epochs; ++epoch) {
    std::vector<tensor> losses;
    for (auto& loader : loaders) loader.begin_epoch(static_cast<std::uint64_t>(epoch) - 1);
    for (std::int64_t step = 0; step < num_steps; ++step) {
      losses.clear();
      for (auto& loader : loaders) {
        auto [samples, labels] = loader.next().value();
        auto loss = nn::CrossEntropy()(replicated.forward({samples}), labels, 1.0 / batch).loss;
        replicated.backward(loss);
        losses.push_back(loss.value);
      }
      if (loaders.empty()) replicated.sync_gradients();  // more processes than replicas
      optimizer->apply(replicated.step() - 1);
    }
    auto loss = mean_over_replicas(losses, replicated.group()).values<float>()[0];
    if (world.rank() == 0 && (epoch % 5 == 0 || epoch == options.epochs))
      std::printf("epoch %2d   loss %.9g\n", epoch, static_cast<double>(loss));
  }
  world.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.epochs = 20;
  defaults.learning_rate = 1e-2;
  return run_program(argc, argv, defaults, train, {},
                     used_options::of_world().plus({"epochs", "seed", "learning_rate"}));
}
