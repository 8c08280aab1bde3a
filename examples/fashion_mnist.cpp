// Trains an MLP of four comparable blocks, or a CNN, on Fashion-MNIST as a pipeline. The same program runs as
// one process with any number of devices (--devices 4), under `troupe launch --nproc-per-node 4`, and under
// `mpirun -n 4`.
#include <troupe/troupe.hpp>

using namespace troupe;

nn::Sequential model_named(const std::string& name) {
  if (name == "mlp")
    return nn::Sequential(nn::ToFloat(), nn::Flatten(),      //
                          nn::Linear(784, 512), nn::ReLU(),  //
                          nn::Linear(512, 768), nn::ReLU(),  //
                          nn::Linear(768, 512), nn::ReLU(),  //
                          nn::Linear(512, 512), nn::ReLU(), nn::Linear(512, 10));
  if (name == "cnn")
    return nn::Sequential(nn::ToFloat(), nn::Reshape({1, 28, 28}),  //
                          nn::Conv2d(1, 32, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),
                          nn::Conv2d(32, 64, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2),  //
                          nn::Flatten(), nn::Linear(3136, 128), nn::ReLU(), nn::Linear(128, 10));
  throw bad_input("--model " + name + ": expected mlp or cnn");
}

int main(int argc, char** argv) {
  std::string model = "mlp";
  auto body = [&](const job_options& options) {
    auto train = fashion_mnist(options.data, data_split::train);
    auto test = fashion_mnist(options.data, data_split::test);
    auto pipeline = Pipeline(model_named(model), options)
                        .loss(nn::CrossEntropy())
                        .optimizer(optim::Adam({.lr = options.learning_rate}));

    auto world = World::init(options);
    progress shown(world);
    Trainer trainer(world, pipeline, shown.callbacks());
    auto fitted = trainer.fit(train);
    shown.on_fitted(fitted, trainer.training_plan());
    auto evaluation = trainer.evaluate(test);
    shown.on_done(evaluation, trainer.weights_sha256());
  };
  return run_program(argc, argv, {}, body, {{"--model", "mlp or cnn", &model}});
}
