// Trains a byte-level GPT on any text file, as a pipeline, and writes more text of that kind.
//
//   gpt --data book.txt --size small --steps 1000 --snapshot-dir runs/book
//   gpt --size small --sample-from runs/book --prompt "It was"
//
// Or on token ids, such as nanoGPT's train.bin.
//
//   gpt --data train.bin --tokens u16 --size tiny --vocabulary 50304
//
// Weights in the published form of GPT-2 (safetensors) can be read: as a beginning, if they are of bytes, and
// to go on with tokens. Tokens are given as ids, because there is no tokenizer here.
//
//   gpt --size gpt2-124m --sample-from model.safetensors --prompt-tokens "464 3290 373" --length 20
#include <charconv>
#include <cmath>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <troupe/collective/every_backend.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

const std::map<std::string, nn::gpt_options> sizes{
    {"tiny", {.context = 64, .features = 64, .num_layers = 2, .num_heads = 2}},
    {"small", {.context = 128, .features = 256, .num_layers = 4, .num_heads = 4}},
    {"medium", {.context = 256, .features = 512, .num_layers = 8, .num_heads = 8}},
    {"gpt2", {.context = 1024, .features = 768, .num_layers = 12, .num_heads = 12}},
    {"gpt2-124m", nn::gpt2_124m()},
};
constexpr std::int64_t num_bytes = 256;
constexpr int most_layers = 1000;
constexpr int most_tokens = 1 << 24;

nn::gpt_options size_named(const std::string& name) {
  if (auto found = sizes.find(name); found != sizes.end()) return found->second;
  throw bad_input("--size " + name + ": expected tiny, small, medium, gpt2 or gpt2-124m");
}

bool yes_or_no(const std::string& option, const std::string& text) {
  if (text != "yes" && text != "no") throw bad_input(option + " " + text + ": expected yes or no");
  return text == "yes";
}

/// "464 3290 373"
std::vector<std::int64_t> token_ids_in(const std::string& text, std::int64_t vocabulary) {
  std::vector<std::int64_t> ids;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::int64_t id = -1;
    const auto* end = word.data() + word.size();
    auto [stop, status] = std::from_chars(word.data(), end, id);
    if (status != std::errc() || stop != end || id < 0 || id >= vocabulary)
      throw bad_input("--prompt-tokens: expected token ids below " + std::to_string(vocabulary) +
                      " with spaces between them, such as \"84 104 101\", got '" + word + "'");
    ids.push_back(id);
  }
  return ids;
}

/// Whether all names are the model's own, as in snapshots and what `troupe snapshot export` writes.
bool has_own_names(const std::vector<named_tensor>& weights, nn::Module& model) {
  std::set<std::string> own;
  for (const auto& each : model.state_dict()) own.insert(each.name);
  for (const auto& each : weights)
    if (!own.contains(each.name)) return false;
  return true;
}

/// From a snapshot folder, a file of `troupe snapshot export`, or weights in GPT-2's or nanoGPT's form.
void load(nn::Sequential& model, const std::filesystem::path& from) {
  auto weights = read_weights(from, {.others = other_numbers::convert});
  if (have_gpt2_layout(weights) || !has_own_names(weights, model)) return read_gpt2_weights(from, model);
  try {
    model.load_state_dict(weights);
  } catch (const std::runtime_error& problem) {
    throw bad_input("--sample-from " + from.string() + ": " + problem.what() +
                    ". Use the --size, --layers and --vocabulary that it was trained with");
  }
}

/// What the program's own options say about writing text.
struct sampling {
  std::string from, prompt = "\n", prompt_tokens, exported;
  int length = 400;
  double temperature = 0.8;
  bool operator==(const sampling&) const = default;
};

void check(const sampling& wanted, std::int64_t vocabulary) {
  if (wanted.length < 0) throw bad_input("--length must be 0 or more, got " + std::to_string(wanted.length));
  if (!std::isfinite(wanted.temperature) || wanted.temperature < 0)
    throw bad_input("--temperature must be a number of 0 or more, for example 0.8");
  if (!wanted.prompt_tokens.empty() && wanted.prompt != sampling().prompt)
    throw bad_input("--prompt and --prompt-tokens both say how the text begins: give one of them");
  if (wanted.prompt_tokens.empty() && vocabulary != num_bytes)
    throw bad_input("a model of " + std::to_string(vocabulary) +
                    " tokens needs a tokenizer, which this program has not: give --prompt-tokens, for "
                    "example \"464 3290 373\"");
  if (wanted.prompt.empty())
    throw bad_input(
        "--prompt is empty, and the text must begin with something: give at least one byte, or "
        "leave --prompt out to begin with a new line");
}

/// How the text begins.
std::vector<std::int64_t> prompt_of(const sampling& wanted, std::int64_t vocabulary) {
  if (wanted.prompt_tokens.empty()) {
    auto bytes = std::as_bytes(std::span(wanted.prompt));
    std::vector<std::int64_t> tokens;
    for (auto byte : bytes) tokens.push_back(std::to_integer<std::int64_t>(byte));
    return tokens;
  }
  auto ids = token_ids_in(wanted.prompt_tokens, vocabulary);
  if (ids.empty())
    throw bad_input("--prompt-tokens has no token id: give at least one, for example \"84 104 101\"");
  return ids;
}

void sample(nn::Sequential model, const sampling& wanted, const nn::gpt_options& size, std::uint64_t seed) {
  check(wanted, size.vocabulary);
  auto tokens = prompt_of(wanted, size.vocabulary);
  bool are_ids = !wanted.prompt_tokens.empty();
  model.materialize(0);
  load(model, wanted.from);
  if (!wanted.exported.empty()) write_gpt2_weights(wanted.exported, model);
  std::cout << (are_ids ? wanted.prompt_tokens : wanted.prompt);
  for (auto token : nn::generate(model, tokens,
                                 {.num_tokens = wanted.length,
                                 .temperature = wanted.temperature,
                                 .context = size.context,
                                 .seed = seed}))
    are_ids ? std::cout << ' ' << token : std::cout << static_cast<char>(token);
  std::cout << '\n';
}

/// A part of the text: bytes, or token ids of the type that --tokens names.
dataset_ptr text_of(const job_options& options, const nn::gpt_options& size, const std::string& tokens,
                    text_part part) {
  if (tokens == "bytes") return text_bytes(options.data, size.context, part);
  return text_tokens(
      options.data, size.context, part,
      {.type = tokens == "u16" ? stored_number::u16 : stored_number::u32, .vocabulary = size.vocabulary});
}

void check_tokens(const std::string& tokens, const nn::gpt_options& size) {
  if (tokens != "bytes" && tokens != "u16" && tokens != "u32")
    throw bad_input("--tokens " + tokens + ": expected bytes, u16 or u32");
  if (tokens == "bytes" && size.vocabulary != num_bytes)
    throw bad_input("this program trains on bytes, unless --tokens says otherwise: choose a --size of " +
                    std::to_string(num_bytes) + " tokens (tiny, small, medium or gpt2)");
}

void train(const job_options& options, nn::Sequential model, const nn::gpt_options& size,
           const std::string& tokens, const std::string& weights, const std::string& profile,
           const std::string& memory) {
  check_tokens(tokens, size);
  auto text = text_of(options, size, tokens, text_part::train);
  auto rest = text_of(options, size, tokens, text_part::evaluate);
  auto pipeline = Pipeline(model, options)
                      .loss(nn::CrossEntropy())
                      .optimizer(optim::AdamW({.lr = options.learning_rate, .beta2 = 0.95}));
  if (!weights.empty()) {
    model.materialize(options.seed);
    read_gpt2_weights(weights, model);
    pipeline.initial_weights(model.state_dict());
  }
  if (!profile.empty()) return save_profile(profile, profile_job(pipeline, text, options));
  std::optional<cost_profile> costs;
  if (memory != "no" && memory != "yes") costs = read_profile(memory);
  auto world = World::init(options, every_backend());
  progress shown(world);
  Trainer trainer(world, pipeline, shown.callbacks());
  auto fitted = trainer.fit(text);
  shown.on_fitted(fitted, trainer.training_plan());
  if (memory != "no") shown.on_memory(costs ? trainer.memory_report(*costs) : trainer.memory_report());
  auto evaluation = trainer.evaluate(rest);
  shown.on_done(evaluation, trainer.weights_sha256());
}

}  // namespace

int main(int argc, char** argv) {
  std::string size = "small", weights, profile, memory = "no", checkpoint_blocks = "no", tokens = "bytes";
  int num_layers = 0, vocabulary = 0;
  sampling text;
  job_options defaults;
  defaults.data = "/usr/share/common-licenses/GPL-3";
  defaults.batch = 16;
  auto body = [&](const job_options& options) {
    auto model_options = size_named(size);
    if (num_layers < 0 || num_layers > most_layers)
      throw bad_input("--layers must lie between 1 and " + std::to_string(most_layers) +
                      ", or be 0 for as many as the --size has, got " + std::to_string(num_layers));
    if (num_layers > 0) model_options.num_layers = num_layers;
    if (vocabulary < 0 || vocabulary > most_tokens)
      throw bad_input("--vocabulary must lie between 1 and " + std::to_string(most_tokens) +
                      ", or be 0 for as many as the --size has, got " + std::to_string(vocabulary));
    if (vocabulary > 0) model_options.vocabulary = vocabulary;
    model_options.checkpoint_blocks = yes_or_no("--checkpoint-blocks", checkpoint_blocks);
    auto model = nn::gpt_layers(model_options);
    if (text.from.empty() && text != sampling())
      throw bad_input(
          "--prompt, --prompt-tokens, --length, --temperature and --export are about writing text: add "
          "--sample-from, or leave them out");
    if (!text.from.empty() && (!weights.empty() || !profile.empty() || memory != "no" || tokens != "bytes"))
      throw bad_input(
          "--sample-from writes text instead of training: leave --weights, --write-profile and --memory out, "
          "and "
          "--tokens");
    if (text.from.empty()) return train(options, model, model_options, tokens, weights, profile, memory);
    used_options::only({"seed"}).refuse_others(options, "--sample-from, which writes text without training,");
    sample(model, text, model_options, options.seed);
  };
  return run_program(
      argc, argv, defaults, body,
      {{"--size", "tiny, small, medium, gpt2 (its width and depth, of bytes) or gpt2-124m (its tokens too)",
        &size},
       {"--layers", "Transformer blocks; 0: as many as the size has", &num_layers},
       {"--vocabulary",
        "Tokens that the model knows, as the weights or --tokens need; 0: as many as the size has",
        &vocabulary},
       {"--tokens", "What --data has: bytes (a text), or token ids, u16 (nanoGPT's train.bin) or u32",
        &tokens},
       {"--checkpoint-blocks",
        "yes: backward computes each block again, for far less memory and the same bits", &checkpoint_blocks},
       {"--weights", "Begin with the weights in this safetensors file, in GPT-2's published form", &weights},
       {"--write-profile",
        "Write what each layer costs with a microbatch to this file, for troupe plan, instead of training. "
        "Each "
        "is measured alone: it does not matter which stages and devices the options name",
        &profile},
       {"--memory",
        "Say at the end what memory the devices took: no, yes, or a file of --write-profile, to compare with "
        "what it predicts",
        &memory},
       {"--sample-from",
        "Write text with the weights in this snapshot folder or safetensors file, instead of training",
        &text.from},
       {"--prompt", "How the text begins", &text.prompt},
       {"--prompt-tokens", "How it begins, as token ids with spaces between them; token ids are written then",
        &text.prompt_tokens},
       {"--length", "Bytes or tokens to write", &text.length},
       {"--temperature", "0: always the likeliest; 1: as often as the model says", &text.temperature},
       {"--export", "Write the weights that --sample-from names to this file, in GPT-2's published form",
        &text.exported}});
}
