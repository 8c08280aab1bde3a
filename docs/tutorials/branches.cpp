// A model of several branches: nodes of a graph, a module with two inputs, and a pipeline that is cut at
// named nodes.
#include <cmath>
#include <iostream>
#include <sstream>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

/// y = gate * a + (1 - gate) * b with gate = sigmoid(linear(a)). a, b, y: [B, features].
class Mix : public nn::multi_module_of<Mix> {
 public:
  explicit Mix(std::int64_t features) : gate_(features, features) {}

  int num_inputs() const override { return 2; }
  std::vector<variable> forward_all(const std::vector<variable>& inputs) override {
    auto gate = sigmoid(gate_(inputs[0]));
    return {gate * inputs[0] + (-gate + 1.0F) * inputs[1]};
  }
  void each_child(const child_visitor& visit) override { visit("gate", gate_); }

 private:
  nn::Linear gate_;
};

nn::Graph make_model() {
  nn::Graph model;
  auto x = model.add("stem", nn::Linear(2, 32), model.input());
  auto relu = model.add("stem_relu", nn::ReLU(), x);
  auto deep = model.add("deep1", nn::Linear(32, 32), relu);
  deep = model.add("deep2", nn::Linear(32, 32), model.add("deep_relu", nn::ReLU(), deep));
  auto wide = model.add("wide", nn::Linear(32, 32), model.add("wide_tanh", nn::Tanh(), x));
  auto mixed = model.add("mix", Mix(32), deep, wide);
  auto sum = model.add("sum", nn::Add(), mixed, x);
  model.output(model.add("head", nn::Linear(32, 2), model.add("norm", nn::LayerNorm(32), sum)));
  return model;
}

/// Points [count, 2] on two spirals, and labels [count]: which of the two.
dataset_ptr spirals(std::int64_t count) {
  std::vector<float> points;
  std::vector<std::uint8_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto radius = static_cast<double>(i) / static_cast<double>(count);
    auto angle = 6 * radius + (i % 2 == 0 ? 0 : M_PI);
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
    labels.push_back(static_cast<std::uint8_t>(i % 2));
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

/// "a,b" as {"a", "b"}.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

void train(const job_options& options, const std::string& cuts) {
  auto pipeline = Pipeline(make_model(), options).optimizer(optim::Adam({.lr = options.learning_rate}));
  if (!cuts.empty()) pipeline.cut_before(words_of(cuts));
  auto world = World::init(options);
  Trainer trainer(world, pipeline);
  auto samples = spirals(2048);
  auto fitted = trainer.fit(samples);
  auto accuracy = trainer.evaluate(samples).accuracy;
  auto weights = trainer.weights_sha256();
  if (world.rank() == 0)
    std::cout << "stages " << trainer.training_plan().num_stages << "\nsteps " << fitted.steps
              << "\naccuracy " << accuracy << "\nweights " << weights << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 128;
  defaults.microbatches = 2;
  defaults.epochs = 20;
  defaults.learning_rate = 1e-2;
  std::string cuts;
  return run_program(
      argc, argv, defaults, [&](const job_options& options) { train(options, cuts); },
      {{"--cut-before", "nodes with which stages begin", &cuts}}, used_options::of_trainer());
}
