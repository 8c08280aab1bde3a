// A GPT in a loop of one's own, whose weights, gradients and optimizer state no process holds whole. It goes
// on when a process is lost, and later from its files on any number of processes that divides its replicas.
//   troupe launch --nproc-per-node 4 -- fully_sharded
//   troupe launch --nproc-per-node 4 -- fully_sharded --lose 2
#include <csignal>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <troupe/config/environment/launch_environment.hpp>
#include <troupe/snapshot/weights_hash.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

constexpr int num_replicas = 4;
constexpr std::int64_t batch = 4, length = 16, vocabulary = 64;
constexpr const char* weights_file = "gpt.safetensors";
constexpr const char* optimizer_file = "gpt_optimizer.safetensors";

/// What a replica reads in a step: numbers that count up by 3, and the next of each.
struct token_batch {
  tensor tokens, next;
};

token_batch batch_of(std::uint64_t step, int replica) {
  std::vector<std::int64_t> tokens, next;
  for (std::int64_t i = 0; i < batch * length; ++i) {
    auto first = static_cast<std::int64_t>(step) * 7 + std::int64_t{replica} * 5 + i / length * 11;
    tokens.push_back((first + i % length * 3) % vocabulary);
    next.push_back((tokens.back() + 3) % vocabulary);
  }
  return {tensor::from(tokens, {batch, length}), tensor::from(next, {batch * length})};
}

variable loss_of(const variable& logits, const tensor& next) {
  return nn::CrossEntropy()(reshape(logits, {batch * length, vocabulary}), next, 1.0 / (batch * length)).loss;
}

/// In MiB.
double mib(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void print_memory(const FullyShardedDataParallel& sharded) {
  auto held = sharded.statistics();
  std::size_t whole = 0;
  for (const auto& [name, bytes] : sharded.units()) whole += bytes;
  std::cout << std::fixed << std::setprecision(2) << sharded.units().size() << " units, " << mib(whole)
            << " MiB of weights; a process owns " << mib(held.own_parameters) << " and has "
            << mib(held.blocks) << " for whole units\n";
}

/// Goes on from files, if there are any.
void load_files(FullyShardedDataParallel& sharded, optim::optimizer_state& optimizer) {
  if (!std::filesystem::exists(optimizer_file)) return;
  auto saved = read_safetensors(optimizer_file);
  sharded.load_state_dict(read_weights(weights_file));
  sharded.load_optimizer_state(optimizer, saved.tensors);
  sharded.set_step(std::stoull(saved.metadata.at("step")));
}

/// All processes call this: each gets everything.
void save_files(FullyShardedDataParallel& sharded, const optim::optimizer_state& optimizer,
                const tensor& loss) {
  auto weights = sharded.state_dict();
  auto state = sharded.optimizer_state_dict(optimizer);
  if (sharded.group().rank() != 0) return;
  write_safetensors(weights_file, weights, {{"format", "pt"}});
  write_safetensors(optimizer_file, state, {{"step", std::to_string(sharded.step())}});
  print_memory(sharded);
  std::cout << "loss of the last step " << std::setprecision(6) << loss.values<float>()[0] << ", weights "
            << weights_sha256(weights) << '\n';
}

/// Trains until all steps are done. Throws collective_error when a member is lost.
void train(World& world, const job_options& options, sharded_copies& copies, int lost_rank) {
  nn::GPT model(
      {.vocabulary = vocabulary, .context = length, .features = 128, .num_layers = 6, .num_heads = 4});
  FullyShardedDataParallel sharded(model, world,
                                   {.unit_size_mb = 0.8, .num_replicas = num_replicas, .seed = options.seed});
  auto optimizer = sharded.make_optimizer(optim::AdamW({.lr = options.learning_rate}));
  if (!copies.restore(sharded, *optimizer)) load_files(sharded, *optimizer);

  std::vector<tensor> losses;
  while (sharded.step() < options.steps) {
    auto step = sharded.step();
    if (world.rank() == lost_rank && step == options.steps / 2) std::raise(SIGKILL);
    losses.clear();
    for (int replica : sharded.own_replicas()) {
      auto [tokens, next] = batch_of(step, replica);
      auto loss = loss_of(sharded.forward({tokens}), next);
      sharded.backward(loss);
      losses.push_back(loss.value);
    }
    sharded.clip_grad_norm(1.0);
    optimizer->apply(step);
    copies.take(sharded, *optimizer);
  }
  save_files(sharded, *optimizer, mean_over_replicas(losses, sharded.group()));
}

void run(const job_options& options, int lose) {
  auto launched = read_launch_environment(process_environment());
  auto lost_rank = !launched || launched->incarnation == 0 ? lose : -1;
  auto world = World::init(options);
  sharded_copies copies;
  for (bool is_done = false; !is_done;) try {
      train(world, options, copies, lost_rank);
      is_done = true;
    } catch (const collective_error& error) {
      for (auto rank : error.ranks()) std::cerr << "rank " << rank << " was lost\n";
    }
  world.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  int lose = -1;
  job_options defaults;
  defaults.steps = 10;
  defaults.learning_rate = 3e-3;
  return run_program(
      argc, argv, defaults, [&](const job_options& options) { run(options, lose); },
      {{"--lose", "the rank that kills itself half-way; -1: none", &lose}},
      used_options::of_world().plus({"steps", "seed", "learning_rate"}));
}
