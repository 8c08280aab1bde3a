// A device whose stage computes on a GPU: copies of its state beside the next step.
#include <caf/scoped_actor.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "one_device.hpp"
#include "support/cuda_emulation/runtime/gpus.hpp"
#include "support/devices.hpp"
#include "troupe/actor/receiving_actor.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/tensor/memory.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::testing;
using actors::devices::device_state;

namespace {

/// All of whose elements are set: in forward that of the running mean, in apply the others. The first is so
/// large that it takes longer to copy than the device to come to the next apply.
class counting_program final : public program::stage_program {
 public:
  explicit counting_program(device where) : where_(where) {}

  device place() const override { return where_; }
  std::vector<tensor> forward(const program::microbatch& which, std::vector<tensor>, tensor) override {
    set(mean_, 1000 + static_cast<float>(which.step));
    return {};
  }
  std::vector<tensor> backward_input(const program::microbatch&, std::vector<tensor>) override { return {}; }
  void backward_weight(const program::microbatch&) override {}
  void apply(std::uint64_t step) override {
    for (auto* each : {&large_, &weight_, &moment_}) set(*each, static_cast<float>(step + 1));
  }
  void discard() override {}
  program::step_metrics take_metrics() override { return {}; }
  std::vector<named_tensor> state() override {
    return {{"large", large_}, {"weight", weight_}, {"mean", mean_}, {"moment", moment_}};
  }
  std::vector<named_tensor> parameters() override { return {{"large", large_}, {"weight", weight_}}; }
  std::vector<named_tensor> optimizer_state() override { return {{"moment", moment_}}; }
  void load_state(const std::vector<named_tensor>&) override {
    throw std::logic_error("[counting_program] nothing is restored here");
  }

 private:
  static void set(tensor& all, float value) { all.copy_from(tensor::full(all.shape(), value)); }

  device where_;
  tensor large_ = tensor::zeros({4'000'000}, dtype::f32, where_);
  tensor weight_ = tensor::zeros({100}, dtype::f32, where_), moment_ = weight_.clone(),
         mean_ = weight_.clone();
};

/// A device of one stage on a thread of its own.
struct device_on_gpu {
  fault::fault_plan no_faults;
  trace::event_ring ring{"device", 1024};
  std::shared_ptr<actors::messages::device_job> job = std::make_shared<actors::messages::device_job>();
  recording_transport out{1};
  caf::actor_system_config config;
  caf::actor_system system{config};
  caf::scoped_actor self{system};
  caf::actor device;
  std::uint64_t step = 0;  ///< the next one

  device_on_gpu() {
    job->training = make_plan({.kind = schedule_kind::gpipe, .num_stages = 1, .num_microbatches = 2});
    place_on_ranks(*job);
    device = system.spawn<actors::actor::receiving_actor<device_state>, caf::detached>(
        out, actors::devices::device_options{.out = &out,
                                             .faults = &no_faults,
                                             .ring = &ring,
                                             .fenced = std::make_shared<std::atomic<std::uint64_t>>(0)});
    self->send(device,
               actors::messages::begin_generation{
                   1, job, {{0, std::make_shared<counting_program>(first_gpu()), self}}, self, self, 1});
  }
  ~device_on_gpu() { self->send_exit(device, caf::exit_reason::user_shutdown); }

  /// The steps' ends and the copies that are due after each of them.
  std::pair<std::vector<actors::messages::step_done>, std::vector<actors::messages::state_copied>> train(
      std::uint64_t num_steps) {
    auto first = std::exchange(step, step + num_steps);
    std::vector<actors::messages::due_copy> due;
    for (auto end = first + 1; end <= step; ++end) due.push_back({end, 0});
    self->send(device, actors::messages::step_credit{
                           1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, first, step, due, 0});
    for (auto each = first; each < step; ++each)
      self->send(device, actors::messages::batch_ready{3, 0, each, fake_source(0).at(each)});
    std::pair<std::vector<actors::messages::step_done>, std::vector<actors::messages::state_copied>> got;
    while (got.first.size() < num_steps || got.second.size() < num_steps)
      self->receive([&](const actors::messages::step_done& done) { got.first.push_back(done); },
                    [&](actors::messages::state_copied& copied) { got.second.push_back(std::move(copied)); },
                    [](const actors::messages::want_batch&) {});
    return got;
  }
};

/// Of all elements; throws if they differ.
float value_of(const named_tensor& copied) {
  auto values = copied.value.values<float>();
  for (auto each : values)
    if (each != values[0]) throw std::runtime_error(copied.name + " was copied while it changed");
  return values[0];
}

}  // namespace

TEST_CASE("a copy of the state is made beside the next step, and has what the step left") {
  device_on_gpu here;
  auto [done, copies] = here.train(8);
  for (const auto& copied : copies) {
    auto state = wire::unpack_state(copied.packed);
    auto applied = static_cast<float>(copied.step);
    CHECK(state[0].name == "large");
    for (auto index : {0, 1, 3}) CHECK(value_of(state[static_cast<std::size_t>(index)]) == applied);
    CHECK(value_of(state[2]) == 1000 + applied - 1);
  }
  for (std::uint64_t step = 1; step <= 8; ++step) CHECK(copies[step - 1].step == step);
}

TEST_CASE("what a device makes on a GPU is gone with it") {
  { device_on_gpu().train(1); }  // what the process keeps: streams, pinned memory
  auto handles = emulation::num_live_handles(), pinned = emulation::num_pinned_allocations();
  auto held = memory_of(first_gpu()).current;
  {
    device_on_gpu here;
    here.train(5);
    // And as a generation ends, with copies under way or not.
    here.self->send(here.device, actors::messages::step_credit{
                                     1, {3, actors::job::call_kind::train, 0, 100, 0, 0}, 5, 6, {{6, 0}}, 0});
    here.self->send(here.device, actors::messages::batch_ready{3, 0, 5, fake_source(0).at(5)});
    here.self->request(here.device, std::chrono::seconds(40), actors::messages::quiesce{2})
        .receive([](const actors::messages::stopped&) {},
                 [](const caf::error& problem) { FAIL(actors::actor::describe(problem)); });
  }
  CHECK(emulation::num_live_handles() == handles);
  CHECK(emulation::num_pinned_allocations() == pinned);
  CHECK(memory_of(first_gpu()).current == held);
}

TEST_CASE("an update waits for the copy of the state, which counts as the copy's cost") {
  device_on_gpu here;
  CHECK(here.train(1).first[0].copy_ns == 0);
  auto waited_ns = [&] {
    std::int64_t sum = 0;
    for (const auto& event : here.ring.snapshot())
      if (event.kind == trace::trace_kind::wait &&
          event.detail == static_cast<std::uint8_t>(trace::wait_reason::state_copy))
        sum += event.end_ns - event.begin_ns;
    return sum;
  };
  // Until a copy takes longer than the device to come to the next update, as nearly each one does.
  std::int64_t copied_ns = 0;
  do {
    for (const auto& done : here.train(2).first) copied_ns += done.copy_ns;
  } while (waited_ns() == 0);
  CHECK(copied_ns >= waited_ns());
}
