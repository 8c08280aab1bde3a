// Processes that compute with each other in a loop of their own: sums over all of them, and over rows and
// columns of a grid. Run it as one process, under `troupe launch --nproc-per-node 4`, or under `mpirun -n 4`;
// `--backend gloo` or `mpi` carries the calls over these libraries.
#include <iostream>
#include <troupe/collective/every_backend.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

void run(const job_options& options) {
  auto world = World::init(options, every_backend());
  auto all = world.default_group();
  auto x = all.allocate({1 << 20});  // where the others can reach it without a copy
  for (auto& element : x.values<float>()) element = static_cast<float>(world.rank());
  auto mean = all.all_reduce(x, reduce_op::mean);  // begins, and returns at once
  auto tp = world.world_size() % 2 == 0 ? 2 : 1;   // ... beside this
  auto mesh = world.mesh({{"dp", world.world_size() / tp}, {"tp", tp}});
  mean.wait();

  auto row = tensor::full({1}, static_cast<float>(world.rank())), rows = tensor::zeros({tp});
  mesh["tp"].all_gather(row, rows).wait();
  auto even = world.new_group(mesh.layout().slice(0, {"dp"}));  // only its members need to call it
  if (even.contains(world.rank())) even.broadcast(row, 0).wait();

  if (world.rank() == 0)
    std::cout << "mean " << x.values<float>()[0] << ", last of the row " << rows.values<float>()[tp - 1]
              << ", " << even.size() << " first ones\n";
}

int main(int argc, char** argv) { return run_program(argc, argv, {}, run, {}, used_options::of_world()); }
