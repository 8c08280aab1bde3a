// A training loop of one's own over all processes, which goes on when a process is lost. The others agree on
// the newest state, form a new group with its successor, and give it that state.
//   troupe launch --nproc-per-node 4 -- own_loop --lose 2
#include <algorithm>
#include <csignal>
#include <iostream>
#include <troupe/config/environment/launch_environment.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

constexpr std::int64_t num_steps = 200, batch = 32;

/// Points [N, 2] in the unit square, and whether they lie within a circle.
dataset_ptr make_points() {
  constexpr std::int64_t count = 2048;
  std::vector<float> points;
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    auto x = static_cast<float>(i * 7919 % count) / count, y = static_cast<float>(i * 104729 % 2039) / 2039;
    points.insert(points.end(), {x, y});
    labels.push_back((x - 0.5F) * (x - 0.5F) + (y - 0.5F) * (y - 0.5F) < 0.16F);
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(points, {count, 2}), tensor::from(labels, {count})});
}

/// What a process must have to go on.
struct training_state {
  nn::Sequential model;
  std::unique_ptr<optim::optimizer_state> optimizer;
  data_position position = {};
  std::int64_t steps_done = 0;
};

training_state initial_state() {
  training_state state{.model = nn::Sequential(nn::Linear(2, 32), nn::ReLU(),   //
                                               nn::Linear(32, 32), nn::ReLU(),  //
                                               nn::Linear(32, 2)),
                       .optimizer = nullptr};
  state.model.materialize(1);
  state.optimizer = optim::Adam({.lr = 1e-2})(state.model.named_parameters());
  return state;
}

/// Copies of these tensors as the process of rank `source` has them, on every member.
std::vector<named_tensor> broadcast(const ProcessGroup& all, const std::vector<named_tensor>& own,
                                    world_rank source) {
  std::vector<named_tensor> received;
  for (const auto& [name, value] : own) {
    received.push_back({name, value.clone()});
    all.broadcast(received.back().value, source).wait();
  }
  return received;
}

/// The state of the member that has done the most steps, the first of several, on every member. In new
/// tensors: of the step that was interrupted, gradients may be there in part.
training_state agree(const ProcessGroup& all, training_state& own) {
  auto steps = tensor::zeros({all.size()}, dtype::i64);
  all.all_gather(tensor::from(std::vector<std::int64_t>{own.steps_done}, {1}), steps).wait();
  auto counts = steps.values<std::int64_t>();
  auto most = std::ranges::max_element(counts);
  auto source = all.ranks()[static_cast<std::size_t>(most - counts.begin())];
  auto agreed = initial_state();
  agreed.model.load_state_dict(broadcast(all, own.model.state_dict(), source));
  agreed.optimizer->load_state(broadcast(all, own.optimizer->state(), source));
  agreed.position =
      data_position::from_tensor(broadcast(all, {{"position", own.position.to_tensor()}}, source)[0].value);
  agreed.steps_done = *most;
  return agreed;
}

/// Trains until all steps are done. Throws collective_error when a member is lost.
void train(const World& world, const ProcessGroup& all, training_state& state, int lost_rank) {
  state = agree(all, state);
  DataParallel replicated(state.model, all);
  DataLoader loader(make_points(), {.batch = batch, .num_replicas = all.size(), .replica = all.rank()});
  loader.resume(state.position);
  tensor loss_value;
  while (state.steps_done < num_steps) {
    auto taken = loader.next();
    if (!taken) continue;  // the next one begins another epoch
    auto& [samples, labels] = *taken;
    auto loss = nn::CrossEntropy()(replicated.forward({samples}), labels, 1.0 / batch).loss;
    if (world.rank() == lost_rank && state.steps_done == num_steps / 2) std::raise(SIGKILL);
    replicated.backward(loss);
    optim::clip_grad_norm(state.model.parameters(), 1.0);  // waits for all gradients
    state.optimizer->apply(static_cast<std::uint64_t>(state.steps_done));
    ++state.steps_done;
    state.position = loader.position();
    loss_value = loss.value;
  }
  auto mean = mean_over_replicas({loss_value}, replicated.group());
  if (world.rank() == 0) std::cout << "loss of the last step " << mean.values<float>()[0] << '\n';
}

void run(const job_options& options, int lose) {
  auto launched = read_launch_environment(process_environment());
  bool is_first_life = !launched || launched->incarnation == 0;
  auto lost_rank = is_first_life ? lose : -1;
  auto world = World::init(options);
  auto state = initial_state();
  while (state.steps_done < num_steps) {
    try {
      train(world, world.default_group(), state, lost_rank);
    } catch (const collective_error& error) {
      for (auto rank : error.ranks())
        std::cerr << "step " << state.steps_done << ": rank " << rank << " was lost\n";
    }
  }
  world.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  int lose = -1;
  return run_program(
      argc, argv, {}, [&](const job_options& options) { run(options, lose); },
      {{"--lose", "the rank that kills itself half-way; -1: none", &lose}}, used_options::of_world());
}
