// A job about the optimizer's state: a layer whose first gradient comes late, a loss that is NaN in some
// steps, a resume with another optimizer. Says what came of it, a line each: "RANK WHAT VALUE".
#include <troupe/autograd/pass_id.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "package/synthetic.hpp"

using namespace troupe;

namespace {

struct worker_options {
  std::string optimizer = "adam", lr = "0.1", cosine = "0";
  std::string late = "0";                          ///< first step in which a layer is used
  std::string bad_from = "1000", bad_to = "1000";  ///< steps in which something is NaN
  std::string bad = "gradients";  ///< what is NaN then: gradients, or loss, which is so with them
  std::string frozen = "no";
  std::string file;  ///< initial weights, which are written there in bf16 before
};

/// Beside what passes through it unchanged, a layer that is used from one step on.
class late_layer : public nn::module_of<late_layer> {
 public:
  explicit late_layer(std::uint64_t first_step) : first_step_(first_step) {}
  variable forward(const variable& input) override {
    auto pass = current_pass();
    bool is_used = pass.is_set && pass.id.step >= first_step_;
    return is_used ? add(input, layer.forward(input)) : input;
  }
  void each_child(const child_visitor& visit) override { visit("layer", layer); }
  nn::Linear layer{160, 160};

 private:
  std::uint64_t first_step_;
};

nn::Sequential model_of(const worker_options& of) {
  nn::Sequential model(nn::Linear(2, 160), late_layer(std::stoull(of.late)), nn::ReLU(), nn::Linear(160, 4));
  if (of.frozen == "yes")
    model.freeze();
  else if (of.frozen == "first")
    model[0]->freeze();
  return model;
}

optim::Optimizer optimizer_of(const worker_options& of) {
  auto lr = std::stod(of.lr);
  auto steps = std::stoull(of.cosine);
  auto schedule = steps > 0 ? optim::cosine(steps) : nullptr;
  if (of.optimizer == "adamw") return optim::AdamW({.lr = lr, .schedule = schedule});
  if (of.optimizer == "lamb") return optim::LAMB({.lr = lr, .schedule = schedule});
  if (of.optimizer == "sgd") return optim::SGD({.lr = lr, .schedule = schedule});
  if (of.optimizer == "momentum") return optim::SGD({.lr = lr, .momentum = 0.9, .schedule = schedule});
  return optim::Adam({.lr = lr, .schedule = schedule});
}

/// NaN in some training steps.
nn::Loss loss_of(const worker_options& of) {
  return [first = std::stoull(of.bad_from), end = std::stoull(of.bad_to), is_seen = of.bad == "loss"](
             const variable& output, const tensor& targets, double gradient_scale) {
    auto pass = current_pass();
    bool is_bad = pass.is_set && pass.id.step >= first && pass.id.step < end;
    auto nan = std::numeric_limits<double>::quiet_NaN();
    auto result = nn::CrossEntropy()(output, targets, is_bad ? nan : gradient_scale);
    if (is_bad && is_seen) result.loss_sum = nan;
    return result;
  };
}

/// How far the late layer's weights are from where they began, at most.
float largest_move(Trainer& trainer, const worker_options& of, const job_options& options) {
  auto began = model_of(of);
  began.materialize(options.seed);
  float largest = 0;
  for (const auto& trained : trainer.state_dict())
    for (const auto& before : began.state_dict())
      if (trained.name == before.name && trained.name.starts_with("1."))
        for (std::size_t i = 0; i < trained.value.values<float>().size(); ++i)
          largest =
              std::max(largest, std::abs(trained.value.values<float>()[i] - before.value.values<float>()[i]));
  return largest;
}

void run(const worker_options& of, const job_options& options) {
  auto world = World::init(options);
  auto rank = world.rank().value();
  auto pipeline = Pipeline(model_of(of), options).optimizer(optimizer_of(of)).loss(loss_of(of));
  if (!of.file.empty()) pipeline.initial_weights(read_weights(of.file));
  Trainer trainer(world, pipeline);
  std::printf("%d loss %a\n", rank, trainer.fit(testing::four_corners(256)).loss);
  std::printf("%d move %.6f\n", rank, static_cast<double>(largest_move(trainer, of, options)));
  std::printf("%d weights %s\n", rank, trainer.weights_sha256().c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  worker_options of;
  return run_program(argc, argv, testing::small_options(),
                     [&](const job_options& options) { run(of, options); },
                     {{"--optimizer", "adam, adamw, lamb, sgd or momentum", &of.optimizer},
                      {"--lr", "its learning rate", &of.lr},
                      {"--cosine", "steps of its schedule; 0: none", &of.cosine},
                      {"--late", "first step in which a layer is used", &of.late},
                      {"--bad-from", "first step whose loss is NaN", &of.bad_from},
                      {"--bad-to", "first step after it whose loss is not", &of.bad_to},
                      {"--bad", "what is NaN: gradients or loss", &of.bad},
                      {"--frozen", "yes: all parameters, or the first layer's", &of.frozen},
                      {"--initial", "a file with the weights to begin with", &of.file}});
}
