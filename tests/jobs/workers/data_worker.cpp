// A job whose model counts how often each sample was trained on: weight i grows by one when sample i is used,
// and by nothing else. Says at the end how often each was.
//
//   data_worker --scenario trainer ...             a Trainer's fit over a stream of shards
//   data_worker --scenario loop --lose 1@7,2@14    a loop with DataLoaders; rank 1 is killed in step 7,
//   before the
//                                                  others have its samples, and rank 2 in step 14, after that
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <troupe/config/environment/launch_environment.hpp>
#include <troupe/nn/init.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;

namespace {

constexpr std::int64_t num_samples = 96;

/// Sample i is a vector of zeros with a one at i; its label is i.
dataset_ptr shard(std::int64_t first, std::int64_t count) {
  return map_dataset({count, num_samples}, [first](std::int64_t index) {
    auto sample = tensor::zeros({num_samples});
    sample.values<float>()[static_cast<std::size_t>(first + index)] = 1;
    return labelled_samples{sample, tensor::from(std::vector{first + index}, {})};
  });
}

dataset_ptr stream_of_shards(std::int64_t shuffle_buffer = 10) {
  return stream_dataset({shard(0, 40), shard(40, 13), shard(53, 43)}, {.shuffle_buffer = shuffle_buffer});
}

bool is_restarted() {
  auto launched = read_launch_environment(process_environment());
  return launched && launched->incarnation > 0;
}

void say_counts(std::span<const float> counts) {
  auto [least, most] = std::ranges::minmax(counts);
  std::printf("samples %zu least %g most %g\n", counts.size(), static_cast<double>(least),
              static_cast<double>(most));
}

/// y = x, for a second stage with a parameter, whose gradient is 0.
class Same : public nn::module_of<Same> {
 public:
  Same() : unused_("unused", {1}, nn::init::constant(0)) {}
  variable forward(const variable& x) override { return x + multiply(as_variable(unused_), 0.0F); }
  void each_parameter(const parameter_visitor& visit) override { visit(unused_); }

 private:
  parameter unused_;
};

/// Its gradient is the same whatever the weights.
loss_result negative_sum(const variable& output, const tensor& target, double gradient_scale) {
  auto total = sum(output);
  return {.loss = multiply(total, static_cast<float>(-gradient_scale)),
          .loss_sum = -total.value.values<float>()[0],
          .num_counted = target.num_elements()};
}

void train(const job_options& options, std::int64_t shuffle_buffer) {
  nn::Sequential model(nn::Linear(num_samples, 1), Same());
  model.materialize(1);
  auto zeros = model.state_dict();
  for (auto& each : zeros) each.value.fill_zero();
  model.load_state_dict(zeros);
  auto pipeline = Pipeline(model, options)
                      .stages(2)
                      .loss(negative_sum)
                      .optimizer(optim::SGD({.lr = static_cast<double>(options.batch)}));
  auto world = World::init(options);
  trainer_callbacks callbacks;
  callbacks.on_resumed = [](const resume_event& event) {
    std::printf("resumed at step %llu\n", static_cast<unsigned long long>(event.step));
  };
  Trainer trainer(world, pipeline, callbacks);
  trainer.fit(stream_of_shards(shuffle_buffer));
  for (const auto& each : trainer.state_dict())
    if (world.rank() == 0 && each.name == "0.weight") say_counts(each.value.values<float>());
}

struct loop_state {
  tensor counts = tensor::zeros({num_samples});
  data_position position = {};
  std::int64_t steps_done = 0;
};

/// That of the member that has done the most steps, on every member.
loop_state agree(const ProcessGroup& all, const loop_state& own) {
  auto steps = tensor::zeros({all.size()}, dtype::i64);
  all.all_gather(tensor::from(std::vector{own.steps_done}, {1}), steps).wait();
  auto found = steps.values<std::int64_t>();
  auto most = std::ranges::max_element(found);
  auto source = all.ranks()[static_cast<std::size_t>(most - found.begin())];
  auto counts = own.counts.clone(), position = own.position.to_tensor();
  all.broadcast(counts, source).wait();
  all.broadcast(position, source).wait();
  return {counts, data_position::from_tensor(position), *most};
}

/// "1@7,2@14": whether this rank is to be killed in this step.
bool is_lost(const std::string& lose, world_rank rank, std::int64_t step) {
  std::istringstream all(lose);
  for (std::string one; std::getline(all, one, ',');)
    if (one == to_string(rank) + '@' + std::to_string(step)) return true;
  return false;
}

void run_steps(const World& world, const ProcessGroup& all, loop_state& state, std::uint64_t num_epochs,
               const std::string& lose) {
  state = agree(all, state);
  DataLoader loader(stream_of_shards(),
                    {.batch = 4, .num_workers = 2, .num_replicas = all.size(), .replica = all.rank()});
  loader.resume(state.position);
  while (loader.epoch() < num_epochs)
    for (auto& [samples, labels] : loader) {
      auto taken = tensor::zeros({num_samples});
      for (auto label : labels.values<std::int64_t>())
        ++taken.values<float>()[static_cast<std::size_t>(label)];
      bool dies = is_lost(lose, world.rank(), state.steps_done);
      if (dies && state.steps_done % 2 == 1) std::raise(SIGKILL);
      all.all_reduce(taken).wait();
      if (dies) std::raise(SIGKILL);
      for (std::size_t i = 0; i < num_samples; ++i)
        state.counts.values<float>()[i] += taken.values<float>()[i];
      state.position = loader.position();
      ++state.steps_done;
    }
}

void run_loop(const job_options& options, std::string lose) {
  if (is_restarted()) lose.clear();
  auto world = World::init(options);
  loop_state state;
  for (bool is_done = false; !is_done;) {
    try {
      run_steps(world, world.default_group(), state, static_cast<std::uint64_t>(options.epochs), lose);
      world.default_group().barrier().wait();
      is_done = true;
    } catch (const collective_error&) {
    }
  }
  if (world.rank() == 0) say_counts(state.counts.values<float>());
  world.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  job_options defaults;
  defaults.batch = 8;
  defaults.epochs = 3;
  std::string scenario = "trainer", lose, buffer = "10";
  return run_program(argc, argv, defaults,
                     [&](const job_options& options) {
                       if (is_restarted()) std::puts("restarted");
                       scenario == "loop" ? run_loop(options, lose) : train(options, std::stoll(buffer));
                     },
                     {{"--scenario", "trainer or loop", &scenario},
                      {"--shuffle-buffer", "of the stream that a Trainer trains on", &buffer},
                      {"--lose", "RANK@STEP,...: ranks that kill themselves in their first life", &lose}});
}
