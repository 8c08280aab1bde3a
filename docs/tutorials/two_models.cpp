// Two models with an optimizer each that train against each other (a GAN, Goodfellow et al. 2014), over any
// number of processes, of which some may be lost: the weights are the same bits.
//   troupe launch --nproc-per-node 4 -- two_models --lose 2
#include <algorithm>
#include <cmath>
#include <csignal>
#include <iostream>
#include <numbers>
#include <troupe/config/environment/launch_environment.hpp>
#include <troupe/random/fill.hpp>
#include <troupe/snapshot/weights_hash.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

constexpr std::int64_t num_steps = 200;  // of each optimizer
constexpr std::int64_t rows = 16;        // of each replica's batch
constexpr int num_replicas = 4;          // whatever the number of processes

/// Numbers [rows, columns] in [-1, 1) that depend on what they are for alone.
tensor uniform(std::int64_t columns, std::uint64_t step, int replica, const char* purpose) {
  auto numbers = tensor::empty({rows, columns});
  fill_uniform(numbers, -1, 1, step, purpose + std::to_string(replica));
  return numbers;
}

/// Points [rows, 2] on the unit circle.
tensor real_points(std::uint64_t step, int replica) {
  auto angles = uniform(1, step, replica, "angle");
  auto points = tensor::empty({rows, 2});
  for (std::size_t i = 0; i < rows; ++i) {
    auto angle = std::numbers::pi_v<float> * angles.values<float>()[i];
    points.values<float>()[2 * i] = std::cos(angle);
    points.values<float>()[2 * i + 1] = std::sin(angle);
  }
  return points;
}

/// The mean loss of the scores [rows, 2] of points that are all real, or all generated.
variable loss_of(const variable& scores, bool are_real) {
  auto labels = tensor::from(std::vector<std::int64_t>(rows, are_real ? 1 : 0), {rows});
  return nn::CrossEntropy()(scores, labels, 1.0 / rows).loss;
}

/// What a process must have to go on. A step of one optimizer is half a step of the loop.
struct training_state {
  nn::Sequential generator, discriminator;
  std::unique_ptr<optim::optimizer_state> generator_steps, discriminator_steps;
  std::int64_t half_steps_done = 0;

  std::vector<named_tensor> weights() {
    auto all = generator.state_dict("generator.");
    std::ranges::move(discriminator.state_dict("discriminator."), std::back_inserter(all));
    return all;
  }
};

training_state initial_state() {
  training_state state{nn::Sequential(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 2)),
                       nn::Sequential(nn::Linear(2, 32), nn::ReLU(), nn::Linear(32, 2)), nullptr, nullptr};
  state.generator.materialize(1, "generator.");
  state.discriminator.materialize(1, "discriminator.");
  optim::Adam adam({.lr = 5e-3, .beta1 = 0.5});
  state.generator_steps = adam(state.generator.named_parameters());
  state.discriminator_steps = adam(state.discriminator.named_parameters());
  return state;
}

/// The state of the member that has done the most half steps, on every member.
training_state agree(const ProcessGroup& all, training_state& own) {
  auto counts = tensor::zeros({all.size()}, dtype::i64);
  all.all_gather(tensor::from(std::vector{own.half_steps_done}, {1}), counts).wait();
  auto most = std::ranges::max_element(counts.values<std::int64_t>());
  auto source = all.ranks()[static_cast<std::size_t>(most - counts.values<std::int64_t>().begin())];
  auto broadcast = [&](const std::vector<named_tensor>& tensors) {
    std::vector<named_tensor> received;
    for (const auto& [name, value] : tensors) {
      received.push_back({name, value.clone()});
      all.broadcast(received.back().value, source).wait();
    }
    return received;
  };
  auto agreed = initial_state();
  agreed.generator.load_state_dict(broadcast(own.generator.state_dict()));
  agreed.discriminator.load_state_dict(broadcast(own.discriminator.state_dict()));
  agreed.generator_steps->load_state(broadcast(own.generator_steps->state()));
  agreed.discriminator_steps->load_state(broadcast(own.discriminator_steps->state()));
  agreed.half_steps_done = *most;
  return agreed;
}

/// The discriminator learns to tell real points from generated ones.
void train_discriminator(training_state& state, DataParallel& replicated, std::uint64_t step) {
  state.discriminator_steps->zero_grad();  // of what the generator's loss has left
  for (int replica : replicated.own_replicas()) {
    auto generated = detach(state.generator({uniform(2, step, replica, "noise")}));
    auto real = loss_of(replicated.forward({real_points(step, replica)}), true);
    replicated.backward(real + loss_of(replicated.forward(generated), false));
  }
  if (replicated.own_replicas().empty()) replicated.sync_gradients();
  state.discriminator_steps->apply(step);
}

/// The generator learns to make points that the discriminator takes for real.
void train_generator(training_state& state, DataParallel& replicated, std::uint64_t step, bool freezes) {
  if (freezes) state.discriminator.freeze();
  state.generator_steps->zero_grad();
  for (int replica : replicated.own_replicas()) {
    auto generated = replicated.forward({uniform(2, step, replica, "noise")});
    replicated.backward(loss_of(state.discriminator(generated), true));
  }
  if (replicated.own_replicas().empty()) replicated.sync_gradients();
  state.generator_steps->apply(step);
  state.discriminator.requires_gradient();
}

/// How far what is generated lies from the circle, on average.
double distance(nn::Sequential& generator) {
  no_grad only_values;
  auto points = generator({uniform(2, num_steps, 0, "noise")}).value;
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i)
    sum += std::abs(std::hypot(points.values<float>()[2 * i], points.values<float>()[2 * i + 1]) - 1);
  return sum / rows;
}

/// Trains until all steps are done. Throws collective_error when a member is lost.
void train(const World& world, const ProcessGroup& all, training_state& state, bool freezes, int lost_rank) {
  state = agree(all, state);
  DataParallel generator(state.generator, all, {.num_replicas = num_replicas}),
      discriminator(state.discriminator, all, {.num_replicas = num_replicas});
  while (state.half_steps_done < 2 * num_steps) {
    if (world.rank() == lost_rank && state.half_steps_done == num_steps + 1) std::raise(SIGKILL);
    auto step = static_cast<std::uint64_t>(state.half_steps_done / 2);
    if (state.half_steps_done % 2 == 0)
      train_discriminator(state, discriminator, step);
    else
      train_generator(state, generator, step, freezes);
    ++state.half_steps_done;
  }
}

void run(const job_options& options, bool freezes, int lose) {
  auto launched = read_launch_environment(process_environment());
  bool is_first_life = !launched || launched->incarnation == 0;
  auto lost_rank = is_first_life ? lose : -1;
  auto world = World::init(options);
  auto state = initial_state();
  auto before = distance(state.generator);
  while (state.half_steps_done < 2 * num_steps) {
    try {
      train(world, world.default_group(), state, freezes, lost_rank);
    } catch (const collective_error& error) {
      for (auto rank : error.ranks()) std::cerr << "rank " << rank << " was lost\n";
    }
  }
  world.barrier();
  if (world.rank() != 0) return;
  std::cout << "distance from the circle: " << before << " before, " << distance(state.generator)
            << " after\n"
            << "weights " << weights_sha256(state.weights()) << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  int lose = -1;
  std::string freeze = "no";
  return run_program(
      argc, argv, {}, [&](const job_options& options) { run(options, freeze == "yes", lose); },
      {{"--lose", "the rank that kills itself half-way; -1: none", &lose},
       {"--freeze", "yes: the discriminator is frozen while the generator learns", &freeze}},
      used_options::of_world());
}
