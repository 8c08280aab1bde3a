// The runtime starts, trains and shuts down twice in one process; the bits do not depend on the number of
// devices.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "synthetic.hpp"

namespace {

std::string train(int devices, const troupe::dataset_ptr& samples) {
  auto world = troupe::World::local(devices, troupe::testing::small_options());
  troupe::Trainer trainer(world, troupe::testing::small_pipeline());
  trainer.fit(samples);
  auto evaluation = trainer.evaluate(samples);
  std::printf("devices %d: accuracy %.3f\n", devices, evaluation.accuracy);
  if (evaluation.accuracy < 0.95) std::exit(1);
  return trainer.weights_sha256();
}

}  // namespace

int main() {
  auto samples = troupe::testing::four_corners(512);
  auto first = train(2, samples);
  auto second = train(1, samples);
  std::printf("%s\n%s\n", first.c_str(), second.c_str());
  return first == second ? 0 : 1;
}
