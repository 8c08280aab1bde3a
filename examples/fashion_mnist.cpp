// Trains an MLP of four comparable blocks on Fashion-MNIST as a pipeline. The same program runs as one
// process with any number of devices (--devices 4), under `troupe launch --nproc-per-node 4`, and under
// `mpirun -n 4`.
#include <troupe/troupe.hpp>

using namespace troupe;

int main(int argc, char** argv) {
  return run_program(argc, argv, {}, [](const job_options& options) {
    auto train = fashion_mnist(options.data, data_split::train);
    auto test = fashion_mnist(options.data, data_split::test);

    nn::Sequential model(nn::ToFloat(), nn::Flatten(),      //
                         nn::Linear(784, 512), nn::ReLU(),  //
                         nn::Linear(512, 768), nn::ReLU(),  //
                         nn::Linear(768, 512), nn::ReLU(),  //
                         nn::Linear(512, 512), nn::ReLU(), nn::Linear(512, 10));
    auto pipeline = Pipeline(model)
                        .stages(options.stages)
                        .microbatches(options.microbatches)
                        .schedule(options.schedule)
                        .loss(nn::CrossEntropy())
                        .optimizer(optim::Adam({.lr = options.learning_rate}));

    auto world = World::init(options);
    progress shown(world);
    Trainer trainer(world, pipeline, shown.callbacks());
    auto fitted = trainer.fit(train);
    shown.on_fitted(fitted, trainer.training_plan());
    auto evaluation = trainer.evaluate(test);
    shown.on_done(evaluation, trainer.weights_sha256());
  });
}
