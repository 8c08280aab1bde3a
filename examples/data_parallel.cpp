// A classifier of made-up points, trained by every process on its own part of the data, in a loop of one's
// own. Four virtual replicas in this process, or one in each of four, give the same losses to the bit:
//
//     data_parallel
//     troupe launch --nproc-per-node 4 -- data_parallel
//
// The number of processes must divide four. With `--backend gloo` or `mpi` the losses are the same but for
// rounding.
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
  auto replicas_per_rank = num_replicas / world.world_size();
  nn::Sequential model(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 32), nn::ReLU(), nn::Linear(32, 2));
  model.materialize(1);
  DataParallel replicated(model, world, {.replicas_per_rank = replicas_per_rank});
  auto optimizer = replicated.make_optimizer(optim::Adam({.lr = 1e-2}));

  auto points = make_points();
  std::vector<ShardedLoader> shards;
  for (int i = 0; i < replicas_per_rank; ++i)
    shards.emplace_back(points,
                        distributed_sampler_options{.num_samples = points->num_samples(),
                                                    .num_replicas = num_replicas,
                                                    .replica = world.rank().value() * replicas_per_rank + i},
                        sharded_loader_options{batch});
  for (std::uint64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<tensor> losses;
    for (auto& shard : shards) shard.set_epoch(epoch);
    for (std::int64_t step = 0; step < shards[0].num_batches(); ++step) {
      losses.clear();
      for (const auto& shard : shards) {
        auto [samples, labels] = shard.batch(step);
        auto loss = nn::CrossEntropy()(replicated.forward({samples}), labels, 1.0 / batch).loss;
        replicated.backward(loss);
        losses.push_back(loss.value);
      }
      optimizer->apply(replicated.step() - 1);
    }
    auto loss = mean_over_replicas(losses, replicated.group()).values<float>()[0];
    if (world.rank() == 0 && epoch % 5 == 4)
      std::printf("epoch %2llu   loss %.9g\n", static_cast<unsigned long long>(epoch) + 1,
                  static_cast<double>(loss));
  }
  world.barrier();
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, {}, train); }
