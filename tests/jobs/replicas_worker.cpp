// A job whose replicas use some weights in some microbatches only. Says what came of it, a line each: "RANK
// WHAT VALUE".
#include <cinttypes>
#include <cstdio>

#include "package/synthetic.hpp"
#include "support/conditional_model.hpp"

using namespace troupe;

namespace {

void run(const job_options& options) {
  auto pipeline = Pipeline(testing::conditional_model(), options).optimizer(optim::Adam({.lr = 1e-2}));
  auto world = World::init(options);
  auto rank = world.rank().value();
  auto samples = testing::four_corners(250);
  Trainer trainer(world, pipeline, {.on_step = [rank](const step_event& done) {
                    std::printf("%d loss-%" PRIu64 " %a\n", rank, done.step, done.loss);
                  }});
  std::printf("%d last-loss %a\n", rank, trainer.fit(samples).loss);
  auto evaluated = trainer.evaluate(samples);
  std::printf("%d evaluated %a,%a,%" PRId64 "\n", rank, evaluated.loss, evaluated.accuracy,
              evaluated.num_samples);
  std::printf("%d weights %s\n", rank, trainer.weights_sha256().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, testing::small_options(), run); }
