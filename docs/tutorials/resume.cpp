// Training in several runs of the program, and fine-tuning: a new last layer on the weights of a finished
// job.
//   resume --snapshot-dir runs/first --steps 100
//   resume --snapshot-dir runs/first --steps 200 --resume
//   resume --fine-tune runs/first
#include <filesystem>
#include <iostream>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// Points [count, 2] in a square; the label says in which of 2 x 2 fields, or whether within a circle.
dataset_ptr points(std::int64_t count, bool by_circle) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto x = 2 * static_cast<float>(i * 7919 % count) / static_cast<float>(count) - 1;
    auto y = 2 * static_cast<float>(i * 104'729 % 2039) / 2039 - 1;
    points.insert(points.end(), {x, y});
    auto field = (x > 0 ? 1 : 0) + (y > 0 ? 2 : 0);
    labels.push_back(static_cast<std::uint8_t>(by_circle ? x * x + y * y < 0.6F : field));
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

/// Layers named "body.0.weight", ... and "HEAD.weight": only what has the same name is taken over.
nn::Sequential make_model(const std::string& head, std::int64_t num_classes) {
  nn::Sequential model;
  model.push_back("body", nn::Sequential(nn::Linear(2, 64), nn::ReLU(), nn::Linear(64, 64), nn::ReLU()));
  model.push_back(head, nn::Linear(64, num_classes));
  return model;
}

void train(const job_options& options, Pipeline pipeline, const dataset_ptr& samples) {
  auto world = World::init(options);
  progress shown(world);
  Trainer trainer(world, pipeline.optimizer(optim::Adam({.lr = options.learning_rate})),
                  {.on_resumed = [&](const resume_event& event) { shown.on_resumed(event); }});
  auto fitted = trainer.fit(samples);
  auto accuracy = trainer.evaluate(samples).accuracy;
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0)
    std::cout << "step " << fitted.steps << "  accuracy " << accuracy << "  weights " << weights << '\n';
}

void fine_tune(const job_options& options, const std::string& from) {
  auto model = make_model("circle", 2);
  model.materialize(options.seed);
  auto unmatched = model.load_state_dict(read_weights(from), {.strict = false});
  std::cout << "new: " << unmatched.missing.size() << " tensors, not used: " << unmatched.unexpected.size()
            << " tensors\n";
  auto pipeline = Pipeline(model, options).initial_weights(model.state_dict());
  train(options, pipeline, points(2048, true));
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 64;
  defaults.epochs = 100;
  defaults.learning_rate = 5e-3;
  std::string from;
  auto body = [&](const job_options& options) {
    if (!from.empty()) return fine_tune(options, from);
    train(options, Pipeline(make_model("fields", 4), options), points(2048, false));
  };
  return run_program(argc, argv, defaults, body,
                     {{"--fine-tune", "take over the weights in this snapshot folder or file", &from}},
                     used_options::of_trainer());
}
