// Weights out of a training job, into a file, and into a model that predicts or trains on.
//   weights --snapshot-dir runs/weights --save model.safetensors    trains, and writes the weights
//   weights --load model.safetensors                                reads them, and predicts
#include <filesystem>
#include <iostream>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

nn::Sequential make_model() { return nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 4)); }

/// Points [count, 2] around the corners of a square; the label is the corner.
dataset_ptr corners(std::int64_t count) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto shift = static_cast<float>(i * 7919 % count) / static_cast<float>(count) - 0.5F;
    points.push_back((i & 1 ? 1.0F : -1.0F) + shift);
    points.push_back((i & 2 ? 1.0F : -1.0F) - shift);
    labels.push_back(static_cast<std::uint8_t>(i % 4));
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

/// Logits [4, 4] of the corners themselves.
tensor predict(nn::Sequential& model) {
  no_grad only_values;
  model.eval();
  return model({tensor::from(std::vector<float>{-1, -1, 1, -1, -1, 1, 1, 1}, {4, 2})}).value;
}

void train_and_save(const job_options& options, const std::string& file) {
  auto pipeline = Pipeline(make_model(), options).optimizer(optim::Adam({.lr = options.learning_rate}));
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  trainer.fit(corners(256));
  if (world.rank() == 0) {
    auto weights = read_weights(options.snapshot_dir);
    write_safetensors(file, weights, {{"format", "pt"}, {"made_by", "the tutorial"}});
    std::cout << "wrote " << weights.size() << " tensors\n";
  }
}

void load_and_predict(const std::string& file) {
  auto model = make_model();
  model.materialize(0);
  model.load_state_dict(read_weights(file));
  auto best = argmax(predict(model), {.axes = {1}});
  std::cout << "corners";
  for (auto corner : best.values<std::int64_t>()) std::cout << ' ' << corner;
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 32;
  defaults.epochs = 20;
  defaults.learning_rate = 1e-2;
  std::string save, load;
  auto body = [&](const job_options& options) {
    if (save.empty() == load.empty()) throw bad_input("expected either --save FILE or --load FILE");
    if (!load.empty()) {
      used_options::only({}).refuse_others(options, "--load, which only predicts,");
      return load_and_predict(load);
    }
    if (options.snapshot_dir.empty())
      throw bad_input("--save needs --snapshot-dir FOLDER, where the weights come from");
    train_and_save(options, save);
  };
  return run_program(argc, argv, defaults, body,
                     {{"--save", "train, and write the weights to this file", &save},
                      {"--load", "read this file or snapshot folder, and predict", &load}},
                     used_options::of_trainer());
}
