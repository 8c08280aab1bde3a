// Trains a byte-level GPT on any text file, as a pipeline, and writes more text of that kind.
//   gpt --data book.txt --size small --steps 1000 --snapshot-dir runs/book
//   gpt --size small --sample-from runs/book --prompt "It was"
#include <cstdlib>
#include <iostream>
#include <map>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

const std::map<std::string, nn::gpt_options> sizes{
    {"tiny", {.context = 64, .features = 64, .num_layers = 2, .num_heads = 2}},
    {"small", {.context = 128, .features = 256, .num_layers = 4, .num_heads = 4}},
    {"medium", {.context = 256, .features = 512, .num_layers = 8, .num_heads = 8}},
    {"gpt2", {.context = 1024, .features = 768, .num_layers = 12, .num_heads = 12}},
};

nn::gpt_options size_named(const std::string& name) {
  if (auto found = sizes.find(name); found != sizes.end()) return found->second;
  throw bad_input("--size " + name + ": expected tiny, small, medium or gpt2");
}

double number_in(const std::string& option, const std::string& text) {
  char* end = nullptr;
  auto number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(number >= 0))
    throw bad_input(option + " " + text + ": expected a number that is not negative");
  return number;
}

std::string sample(nn::Sequential model, const std::filesystem::path& folder, const std::string& prompt,
                   const nn::generate_options& options) {
  model.materialize(0);
  model.load_state_dict(read_weights(folder));
  std::vector<std::int64_t> tokens;
  for (unsigned char byte : prompt) tokens.push_back(byte);
  std::string text;
  for (auto token : nn::generate(model, tokens, options)) text += static_cast<char>(token);
  return text;
}

void train(const job_options& options, const nn::Sequential& model, std::int64_t context) {
  auto text = text_bytes(options.data, context, text_part::train);
  auto rest = text_bytes(options.data, context, text_part::evaluate);
  auto pipeline = Pipeline(model)
                      .stages(options.stages)
                      .microbatches(options.microbatches)
                      .schedule(options.schedule)
                      .loss(nn::CrossEntropy())
                      .optimizer(optim::AdamW({.lr = options.learning_rate, .beta2 = 0.95}))
                      .precision(options.precision)
                      .clip_grad_norm(options.clip_grad_norm)
                      .loss_scale({.initial_scale = options.loss_scale});
  auto world = World::init(options);
  progress shown(world);
  Trainer trainer(world, pipeline, shown.callbacks());
  auto fitted = trainer.fit(text);
  shown.on_fitted(fitted, trainer.training_plan());
  auto evaluation = trainer.evaluate(rest);
  shown.on_done(evaluation, trainer.weights_sha256());
}

}  // namespace

int main(int argc, char** argv) {
  std::string size = "small", prompt = "\n", length = "400", temperature = "0.8", from;
  job_options defaults;
  defaults.data = "/usr/share/common-licenses/GPL-3";
  defaults.batch = 16;
  auto body = [&](const job_options& options) {
    auto model_options = size_named(size);
    auto model = nn::gpt_layers(model_options);
    if (from.empty()) return train(options, model, model_options.context);
    nn::generate_options how{.num_tokens = static_cast<int>(number_in("--length", length)),
                             .temperature = number_in("--temperature", temperature),
                             .context = model_options.context,
                             .seed = options.seed};
    std::cout << prompt << sample(model, from, prompt, how) << '\n';
  };
  return run_program(
      argc, argv, defaults, body,
      {{"--size", "tiny, small, medium or gpt2 (of 124 million parameters)", &size},
       {"--sample-from", "Write text with the weights in this snapshot folder, instead of training", &from},
       {"--prompt", "How the text begins", &prompt},
       {"--length", "Bytes to write", &length},
       {"--temperature", "0: always the likeliest byte; 1: as often as the model says", &temperature}});
}
