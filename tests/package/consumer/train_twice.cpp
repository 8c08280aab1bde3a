// The runtime starts, trains and shuts down twice in one process; the bits do not depend on the number of
// devices.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "synthetic.hpp"

namespace {

/// A sum around a layer.
troupe::Pipeline graph_pipeline() {
  namespace nn = troupe::nn;
  nn::Graph model;
  auto x = model.add("first", nn::Linear(2, 16), model.input());
  auto y = model.add("second", nn::Linear(16, 16), model.add("relu", nn::ReLU(), x));
  model.output(model.add("last", nn::Linear(16, 4), model.add("sum", nn::Add(), x, y)));
  return troupe::Pipeline(model)
      .cut_before({"second"})
      .microbatches(4)
      .optimizer(troupe::optim::Adam({.lr = 0.01}));
}

std::string train(int devices, const troupe::dataset_ptr& samples, const troupe::Pipeline& pipeline) {
  auto world = troupe::World::local(devices, troupe::testing::small_options());
  troupe::Trainer trainer(world, pipeline);
  trainer.fit(samples);
  auto evaluation = trainer.evaluate(samples);
  std::printf("devices %d: accuracy %.3f\n", devices, evaluation.accuracy);
  if (evaluation.accuracy < 0.95) std::exit(1);
  return trainer.weights_sha256();
}

}  // namespace

int main() {
  auto samples = troupe::testing::four_corners(512);
  for (const auto& pipeline : {troupe::testing::small_pipeline(), graph_pipeline()}) {
    auto first = train(2, samples, pipeline);
    auto second = train(1, samples, pipeline);
    std::printf("%s\n%s\n", first.c_str(), second.c_str());
    if (first != second) return 1;
  }
  return 0;
}
