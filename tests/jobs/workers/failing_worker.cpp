// A process of a job that fails as it is told once all have begun. bad-sample: in the loss, on whichever rank
// has it.
//
//   failing_worker RANK throw|bad-input|bad-sample|segfault|exit
#include <csignal>
#include <cstdlib>
#include <string>
#include <troupe/troupe.hpp>

using namespace troupe;

void train_on_bad_sample(const World& world, const job_options& options) {
  auto refuse = [](const variable&, const tensor& targets, double) -> loss_result {
    throw bad_input("sample 3 has no label of these " + std::to_string(targets.num_elements()));
  };
  auto pipeline = Pipeline(nn::Sequential(nn::Linear(2, 2), nn::Linear(2, 2)), options)
                      .microbatches(1)
                      .loss(refuse)
                      .optimizer(optim::SGD({.lr = 0.1}));
  Trainer trainer(world, std::move(pipeline));
  trainer.forward_backward({tensor::full({4, 2}, 0.5), tensor::full({4, 2}, 0.5)});
}

int main(int argc, char** argv) {
  if (argc < 3) return 99;
  int failing_rank = std::atoi(argv[1]);
  std::string how = argv[2];
  return run_program(1, argv, {}, [&](const job_options& options) {
    auto world = World::init(options);
    world.barrier();
    if (how == "bad-sample") train_on_bad_sample(world, options);
    if (world.rank() == failing_rank) {
      if (how == "throw") throw std::runtime_error("the disk said no");
      if (how == "bad-input") throw bad_input("there is no file of that name");
      if (how == "segfault") std::raise(SIGSEGV);
      if (how == "exit") std::_Exit(7);
    }
    world.barrier();
  });
}
