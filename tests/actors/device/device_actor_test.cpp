#include "troupe/device/device_actor.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "actors/virtual_actors.hpp"
#include "support/bits.hpp"
#include "support/fake_program.hpp"
#include "support/recording_transport.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/loader/messages.hpp"
#include "troupe/scheduler/messages.hpp"
#include "troupe/stage/messages.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

using calls = std::vector<std::string>;

/// One device of a job, its neighbours being probes: 4 samples a batch in 2 microbatches.
struct one_device {
  virtual_actors actors;
  recording_transport out{1};
  fault_plan no_faults;
  event_ring ring{"device", 1024};
  std::shared_ptr<std::atomic<std::uint64_t>> fenced = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<fake_model> model = std::make_shared<fake_model>();
  std::shared_ptr<device_job> job = std::make_shared<device_job>();
  probe scheduler{actors}, loader{actors}, owner{actors};
  int number;
  caf::actor device;
  std::uint64_t generation = 1;

  /// Stages are dealt to `num_devices` devices, one to each rank; this is device `device_number`.
  one_device(int num_stages, int num_devices, int device_number, schedule_kind kind = schedule_kind::gpipe)
      : number(device_number) {
    model->num_stages = num_stages;
    job->training = make_plan({kind, num_stages, 2, num_devices});
    job->rank_of_stage = job->training.device_of_stage;
    device =
        actors.spawn<actor_of<device_state>>(device_options{number, number, &out, &no_faults, &ring, fenced});
  }

  /// Attaches stages made anew, as they are after `steps_applied` steps.
  void begin(std::uint64_t with_generation = 1, std::uint64_t steps_applied = 0) {
    generation = with_generation;
    begin_generation order{generation, job, {}, scheduler.handle(), {}, 0};
    for (int stage = 0; stage < model->num_stages; ++stage) {
      if (job->training.device_of_stage[static_cast<std::size_t>(stage)] != number) continue;
      auto program = std::make_shared<fake_program>(model, stage);
      program->state()[2].value.values<float>()[0] = static_cast<float>(steps_applied);
      order.stages.push_back({stage, program, owner.handle()});
      if (stage == 0 || stage == model->num_stages - 1) order.loader = loader.handle();
    }
    actors.send(device, order);
    model->calls.clear();
  }
  grant training(std::uint64_t first, std::uint64_t end, std::vector<due_copy> copies = {},
                 std::uint64_t committed = 0) {
    return {generation, {3, call_kind::train, 0, 100, 0, 0}, first, end, std::move(copies), committed};
  }
  void give(const grant& given) { actors.send(device, given); }
  void batch_comes(std::uint64_t step, std::uint32_t call = 3, std::uint32_t source = 0) {
    actors.send(device, batch_ready{call, source, step, fake_source(static_cast<int>(source)).at(step)});
  }
  tensor_tag tag(std::uint64_t step, std::uint32_t stage, std::uint32_t microbatch, tensor_role role) const {
    return {generation, step, 3, stage, microbatch, role};
  }
  void tensor_comes(const tensor_tag& tag) {
    actors.send(device, tensor_arrived{tag, tensor::full({2, 1}, 0.5f)});
  }
  answer<stopped> stop(std::uint64_t at_generation) {
    return ask<stopped>(actors, device, quiesce{at_generation});
  }
  std::vector<std::uint64_t> steps_done() const {
    std::vector<std::uint64_t> steps;
    for (const auto& done : scheduler.all<step_done>()) steps.push_back(done.step);
    return steps;
  }
};

using steps = std::vector<std::uint64_t>;

}  // namespace

// ---- the plan

TEST_CASE(
    "a device in the middle computes each action as soon as its inputs are there, in the order of its plan") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(here.training(0, 1));
  CHECK(here.model->calls.empty());

  here.tensor_comes(here.tag(0, 1, 1, tensor_role::activation));  // microbatch 1 before 0
  CHECK(here.model->calls.empty());
  here.tensor_comes(here.tag(0, 1, 1, tensor_role::gradient));
  CHECK(here.model->calls.empty());
  here.tensor_comes(here.tag(0, 1, 0, tensor_role::activation));
  CHECK(here.model->calls == calls{"F1.0", "F1.1"});
  here.tensor_comes(here.tag(0, 1, 0, tensor_role::gradient));
  CHECK(here.model->calls == calls{"F1.0", "F1.1", "I1.0", "W1.0", "I1.1", "W1.1", "A1@0"});
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("whatever the order of arrival, the calls are those of the plan") {
  for (auto kind : {schedule_kind::gpipe, schedule_kind::one_f_one_b}) {
    calls expected;
    std::vector<int> order{0, 1, 2, 3, 4, 5, 6, 7};
    std::mt19937 random(1);
    for (int i = 0; i < 100; ++i) {
      one_device here(3, 3, 1, kind);
      here.begin();
      here.give(here.training(0, 2));
      for (auto which : order) {
        auto role = which & 1 ? tensor_role::gradient : tensor_role::activation;
        here.tensor_comes(here.tag(static_cast<std::uint64_t>(which >> 2), 1, (which >> 1) & 1, role));
      }
      if (expected.empty()) expected = here.model->calls;
      REQUIRE(here.model->calls == expected);
      REQUIRE(here.steps_done() == steps{0, 1});
      std::ranges::shuffle(order, random);
    }
    CHECK(expected.size() == 14);
  }
}

TEST_CASE("activations go to the next stage and gradients to the one before, with their tags") {
  one_device here(3, 3, 1);
  here.begin(5, 7);
  here.give(here.training(7, 8));
  CHECK(here.out.tensors.empty());
  for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(7, 1, microbatch, tensor_role::activation));
  REQUIRE(here.out.tensors.size() == 2);
  CHECK(here.out.tensors[0].to_rank == 2);
  CHECK(here.out.tensors[0].tag == tensor_tag{5, 7, 3, 2, 0, tensor_role::activation});
  CHECK(same_bits(here.out.tensors[0].value, tensor::full({2, 1}, 0.5f * 1.125f)));
  CHECK(here.out.tensors[1].tag.microbatch == 1);
}

TEST_CASE("gradients leave before the weight gradients are computed") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(here.training(0, 1));
  std::size_t sent_before_weights = 0;
  here.model->before = [&](const std::string& call) {
    if (call == "W1.0") sent_before_weights = here.out.tensors.size();
  };
  for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(0, 1, microbatch, tensor_role::activation));
  here.tensor_comes(here.tag(0, 1, 0, tensor_role::gradient));
  CHECK(sent_before_weights == 3);
  CHECK(here.out.tensors[2].to_rank == 0);
  CHECK(here.out.tensors[2].tag == tensor_tag{1, 0, 3, 0, 0, tensor_role::gradient});
}

TEST_CASE("the first stage takes the rows of its microbatch, and sends no gradient on") {
  one_device here(2, 2, 0);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_comes(0);
  REQUIRE(here.out.tensors.size() == 2);
  auto inputs = fake_source(0).at(0).inputs;
  CHECK(same_bits(here.out.tensors[0].value, inputs.rows(0, 2)));
  CHECK(same_bits(here.out.tensors[1].value, inputs.rows(2, 2)));
  for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(0, 0, microbatch, tensor_role::gradient));
  CHECK(here.out.tensors.size() == 2);
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("the last stage waits for its targets, starts from its loss and reports the metrics") {
  one_device here(2, 2, 1);
  here.begin();
  here.give(here.training(0, 1));
  for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(0, 1, microbatch, tensor_role::activation));
  CHECK(here.model->calls.empty());
  here.batch_comes(0);
  CHECK(here.model->calls == calls{"F1.0", "F1.1", "I1.0", "W1.0", "I1.1", "W1.1", "A1@0"});
  auto done = here.scheduler.last<step_done>();
  CHECK(done.metrics.num_samples == 4);
  CHECK(done.metrics.loss_sum > 0);
  REQUIRE(here.out.tensors.size() == 2);
  CHECK(here.out.tensors[0].tag == tensor_tag{1, 0, 3, 0, 0, tensor_role::gradient});
}

TEST_CASE("other stages report no metrics") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(here.training(0, 1));
  for (auto role : {tensor_role::activation, tensor_role::gradient})
    for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(0, 1, microbatch, role));
  CHECK(here.scheduler.last<step_done>().metrics == step_metrics{});
}

TEST_CASE("stages on one device hand tensors to each other without the transport") {
  one_device here(4, 2, 1);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_comes(0);
  for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(0, 2, microbatch, tensor_role::activation));
  CHECK(here.steps_done() == steps{0});
  CHECK(std::ranges::count(here.model->calls, "A2@0") == 1);
  CHECK(std::ranges::count(here.model->calls, "A3@0") == 1);
  REQUIRE(here.out.tensors.size() == 2);  // gradients for stage 1
  CHECK(std::ranges::all_of(here.out.tensors,
                            [](const auto& sent) { return sent.to_rank == 0 && sent.tag.stage == 1; }));
}

TEST_CASE("one device with all stages trains by itself") {
  one_device here(3, 1, 0, schedule_kind::one_f_one_b);
  here.begin();
  here.give(here.training(0, 3));
  for (std::uint64_t step : {1, 0, 2}) here.batch_comes(step);
  CHECK(here.steps_done() == steps{0, 1, 2});
  CHECK(here.out.tensors.empty());
}

// ---- grants

TEST_CASE("the grant bounds what is computed") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2));
  for (std::uint64_t step = 0; step < 4; ++step) here.batch_comes(step);
  CHECK(here.steps_done() == steps{0, 1});
  here.give(here.training(1, 3));
  CHECK(here.steps_done() == steps{0, 1, 2});
  here.give(here.training(2, 4));
  CHECK(here.steps_done() == steps{0, 1, 2, 3});
}

TEST_CASE("grants of another generation are dropped") {
  one_device here(1, 1, 0);
  here.begin(2);
  for (std::uint64_t other : {1, 3}) {
    auto given = here.training(0, 1);
    given.generation = other;
    here.give(given);
  }
  here.batch_comes(0);
  CHECK(here.model->calls.empty());
  CHECK(here.loader.size() == 0);
}

TEST_CASE("batches are asked for ahead of the step at hand, each once, none beyond the grant") {
  one_device here(1, 1, 0);
  here.begin();
  auto wanted = [&] {
    steps asked;
    for (const auto& want : here.loader.all<want_batch>()) {
      CHECK(want.call == 3);
      CHECK(want.source == 0);
      asked.push_back(want.step);
    }
    return asked;
  };
  here.give(here.training(0, 3));
  CHECK(wanted() == steps{0, 1});
  here.batch_comes(0);
  CHECK(wanted() == steps{0, 1, 2});
  here.batch_comes(1);
  here.batch_comes(2);
  CHECK(wanted() == steps{0, 1, 2});
  here.give(here.training(3, 4));
  CHECK(wanted() == steps{0, 1, 2, 3});
}

TEST_CASE("samples of another call, another source or a step that is over are not used") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2));
  here.batch_comes(0, 2);
  here.batch_comes(0, 3, 1);
  CHECK(here.model->calls.empty());
  here.batch_comes(0);
  CHECK(here.steps_done() == steps{0});
  here.batch_comes(0);
  CHECK(here.steps_done() == steps{0});
}

// ---- copies

TEST_CASE("states are copied after the steps for which a copy is due, and not after others") {
  one_device here(2, 1, 0);
  here.begin();
  here.give(here.training(0, 4, {{2, 0}, {3, 1}}));
  for (std::uint64_t step = 0; step < 4; ++step) here.batch_comes(step);
  auto copies = here.owner.all<state_copied>();
  REQUIRE(copies.size() == 4);  // two stages
  CHECK(copies[0].step == 2);
  CHECK_FALSE(copies[0].to_disk);
  CHECK(copies[2].step == 3);
  CHECK(copies[2].to_disk);
  CHECK(copies[2].generation == 1);
  auto state = unpack_state(copies[3].packed);
  CHECK(state[0].name == "1.weight");
  CHECK(state[2].value.values<float>()[0] == 3);  // steps applied
  auto done = here.scheduler.all<step_done>();
  CHECK(done[0].copy_ns == 0);
  CHECK(done[1].copy_ns > 0);
}

TEST_CASE("a copy does not change with the training that goes on") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2, {{1, 0}, {2, 0}}));
  here.batch_comes(0);
  auto first = here.owner.last<state_copied>().packed;
  auto before = first.clone();
  here.batch_comes(1);
  CHECK(same_bits(first, before));
  CHECK_FALSE(same_bits(here.owner.last<state_copied>().packed, before));
}

TEST_CASE("owners hear of a committed step once, and only of newer ones") {
  one_device here(2, 1, 0);
  here.begin();
  here.give(here.training(0, 1, {}, 5));
  here.give(here.training(0, 2, {}, 5));
  here.give(here.training(0, 3, {}, 4));
  CHECK(here.owner.all<drop_before>().size() == 2);  // two stages
  CHECK(here.owner.last<drop_before>().step == 5);
}

TEST_CASE("what was committed before everything was lost keeps nobody from dropping copies afterwards") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 1, {}, 50));
  here.begin(2);
  here.give(here.training(0, 1, {}, 3));
  CHECK(here.owner.last<drop_before>().step == 3);
}

// ---- evaluation and hash

TEST_CASE("evaluation goes forward only, in the microbatches of its call") {
  one_device here(2, 2, 1);
  here.begin();
  here.give({1, {3, call_kind::evaluate, 1, 0, 2, 4}, 0, 2, {{1, 1}}, 0});
  CHECK(here.loader.last<want_batch>().source == 1);
  here.batch_comes(0, 3, 1);
  for (auto microbatch : {0u, 1u, 2u, 3u}) {
    here.actors.send(here.device, tensor_arrived{here.tag(0, 1, microbatch, tensor_role::activation),
                                                 tensor::full({1, 1}, 1)});
  }
  CHECK(here.model->calls == calls{"E1.0", "E1.1", "E1.2", "E1.3"});
  CHECK(here.steps_done() == steps{0});
  CHECK(here.scheduler.last<step_done>().metrics.num_samples == 4);
  CHECK(here.out.tensors.empty());
  CHECK(here.owner.all<state_copied>().empty());
}

TEST_CASE("a call that trains and then evaluates begins anew for the second") {
  one_device here(1, 1, 0);
  here.begin();
  here.give({1, {3, call_kind::train, 0, 1, 1, 2}, 0, 1, {}, 0});
  here.batch_comes(0);
  here.model->calls.clear();
  here.give({1, {3, call_kind::evaluate, 1, 1, 1, 2}, 0, 1, {}, 0});
  here.batch_comes(0, 3, 0);  // what training had asked for
  CHECK(here.model->calls.empty());
  here.batch_comes(0, 3, 1);
  CHECK(here.model->calls == calls{"E0.0", "E0.1"});
  CHECK(here.steps_done() == steps{0, 0});
}

TEST_CASE("training goes on with other samples when the grant says so") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_comes(0);
  auto given = here.training(1, 2);
  given.call.source = 1;
  here.give(given);
  CHECK(here.loader.last<want_batch>().source == 1);
  here.batch_comes(1, 3, 0);
  CHECK(here.steps_done() == steps{0});
  here.batch_comes(1, 3, 1);
  CHECK(here.steps_done() == steps{0, 1});
}

TEST_CASE("for a hash each stage's parameters, and nothing else, go to the scheduler's node") {
  one_device here(4, 2, 1);
  here.begin(6);
  here.give({6, {3, call_kind::hash, 0, 0, 0, 0}, 0, 1, {}, 0});
  REQUIRE(here.out.tensors.size() == 2);
  for (std::uint32_t i : {0u, 1u}) {
    CHECK(here.out.tensors[i].to_rank == 0);
    CHECK(here.out.tensors[i].tag == tensor_tag{6, 0, 3, 2 + i, 0, tensor_role::parameter});
    auto parameters = unpack_state(here.out.tensors[i].value);
    REQUIRE(parameters.size() == 1);
    CHECK(parameters[0].name == std::to_string(2 + i) + ".weight");
  }
  CHECK(here.model->calls.empty());
}

// ---- failures

TEST_CASE("the abort word stops a device between two actions") {
  one_device here(1, 1, 0);
  here.begin();
  here.model->before = [&](const std::string& call) {
    if (call == "F0.1") here.fenced->store(2);
  };
  here.give(here.training(0, 1));
  here.batch_comes(0);
  CHECK(here.model->calls == calls{"F0.0", "F0.1"});
  CHECK(here.steps_done().empty());
}

TEST_CASE("the abort word of the generation at hand stops nothing") {
  one_device here(1, 1, 0);
  here.fenced->store(2);
  here.begin(2);
  here.give(here.training(0, 1));
  here.batch_comes(0);
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("a device that is told to stop says which step is interrupted, and computes no more") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 3));
  here.batch_comes(0);
  auto answer = here.stop(2);
  REQUIRE(answer.value);
  CHECK(answer.value->generation == 2);
  CHECK(answer.value->interrupted_step == 2);  // one is done, the second begun
  here.model->calls.clear();
  here.batch_comes(1);
  here.give(here.training(0, 5));
  CHECK(here.model->calls.empty());
}

TEST_CASE("between two steps of a call the steps done are what was interrupted") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_comes(0);
  CHECK(here.stop(2).value->interrupted_step == 1);
}

TEST_CASE("a device that does not train has nothing to make up for") {
  one_device here(1, 1, 0);
  CHECK(here.stop(1).value->interrupted_step == 0);
  here.begin();
  CHECK(here.stop(2).value->interrupted_step == 0);
  here.begin(2);
  here.give({2, {3, call_kind::evaluate, 1, 0, 2, 2}, 0, 2, {}, 0});
  CHECK(here.stop(3).value->interrupted_step == 0);
}

TEST_CASE("two fences in a row get the same answer") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 3));
  here.batch_comes(0);
  CHECK(here.stop(2).value->interrupted_step == 2);
  CHECK(here.stop(3).value->interrupted_step == 2);
}

TEST_CASE("a device that is stopped lets go of its stages") {
  one_device here(1, 1, 0);
  auto program = std::make_shared<fake_program>(here.model, 0);
  std::weak_ptr<fake_program> watched = program;
  here.actors.send(here.device, begin_generation{1,
                                                 here.job,
                                                 {{0, std::move(program), here.owner.handle()}},
                                                 here.scheduler.handle(),
                                                 here.loader.handle(),
                                                 0});
  CHECK_FALSE(watched.expired());
  here.stop(2);
  CHECK(watched.expired());
}

TEST_CASE("in a new generation tensors of the old one are dropped, those of the new one were held") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(here.training(0, 1));
  here.tensor_comes(here.tag(0, 1, 1, tensor_role::activation));  // of generation 1, never taken
  here.tensor_comes({2, 0, 3, 1, 0, tensor_role::activation});    // of generation 2, early
  here.stop(2);
  here.begin(2);
  here.give(here.training(0, 1));
  CHECK(here.model->calls == calls{"F1.0"});
  here.tensor_comes({1, 0, 3, 1, 1, tensor_role::activation});  // late
  CHECK(here.model->calls == calls{"F1.0"});
  here.tensor_comes(here.tag(0, 1, 1, tensor_role::activation));
  CHECK(here.model->calls == calls{"F1.0", "F1.1"});
}

TEST_CASE("copies that were due in the old generation are forgotten") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2, {{1, 0}, {2, 1}}));
  here.stop(2);
  here.begin(2);
  here.give(here.training(0, 2, {{2, 0}}));
  for (std::uint64_t step : {0, 1}) here.batch_comes(step);
  auto copies = here.owner.all<state_copied>();
  REQUIRE(copies.size() == 1);
  CHECK(copies[0].step == 2);
  CHECK_FALSE(copies[0].to_disk);
  CHECK(copies[0].generation == 2);
}

TEST_CASE("an exception of the program ends the device with its words") {
  one_device here(1, 1, 0);
  obituary of(here.actors, here.device);
  here.begin();
  here.model->before = [](const std::string& call) {
    if (call == "W0.1") throw std::runtime_error("not a number in the gradient");
  };
  here.give(here.training(0, 1));
  here.batch_comes(0);
  CHECK(of.reason() == "not a number in the gradient");
  CHECK(here.steps_done().empty());
}

TEST_CASE("the same tensor twice ends the device") {
  one_device here(3, 3, 1);
  obituary of(here.actors, here.device);
  here.begin();
  here.tensor_comes(here.tag(0, 1, 0, tensor_role::activation));
  here.tensor_comes(here.tag(0, 1, 0, tensor_role::activation));
  REQUIRE(of.reason());
  CHECK(of.reason()->find("each tensor once") != std::string::npos);
}

// ---- reports

TEST_CASE("a report names its generation, call and device; the last of a call says what was done when") {
  one_device here(1, 1, 0);
  here.begin(4);
  auto given = here.training(0, 2);
  given.call.target_step = 2;
  here.give(given);
  here.batch_comes(0);
  auto first = here.scheduler.last<step_done>();
  CHECK(first.generation == 4);
  CHECK(first.call == 3);
  CHECK(first.device == 0);
  CHECK(first.actions.empty());
  CHECK(first.peak_activations == 2);
  CHECK(first.busy_ns > 0);
  CHECK(first.last_end_ns - first.first_begin_ns >= first.busy_ns);
  here.batch_comes(1);
  auto last = here.scheduler.last<step_done>();
  REQUIRE(last.actions.size() == 4);
  CHECK(last.actions[0].kind == action_kind::forward);
  CHECK(last.actions[3].kind == action_kind::backward);
  CHECK(last.actions[3].microbatch == 1);
}

// ---- reductions

namespace {

/// Stages 0 and 2 combine something, then all three do.
void with_reductions(one_device& here, int num_devices) {
  here.job->training = make_plan({schedule_kind::gpipe, 3, 2, num_devices, {{0, 2}, {0, 1, 2}}});
}

tensor_tag share(const one_device& here, std::uint32_t to_stage, std::uint32_t reduction,
                 std::uint32_t from_stage) {
  return here.tag(0, to_stage, reduction * 3 + from_stage, tensor_role::share);
}

std::vector<tensor_tag> sent_shares(const one_device& here) {
  std::vector<tensor_tag> tags;
  for (const auto& sent : here.out.tensors)
    if (sent.tag.role == tensor_role::share) tags.push_back(sent.tag);
  return tags;
}

void gradients_come(one_device& here, std::uint32_t stage) {
  for (auto microbatch : {0u, 1u}) {
    if (stage > 0) here.tensor_comes(here.tag(0, stage, microbatch, tensor_role::activation));
    if (stage < 2) here.tensor_comes(here.tag(0, stage, microbatch, tensor_role::gradient));
  }
}

}  // namespace

TEST_CASE(
    "a stage's share goes to the others after its last weight gradient, and it waits for all of theirs") {
  one_device here(3, 3, 2);
  with_reductions(here, 3);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_comes(0);
  gradients_come(here, 2);
  CHECK(here.model->calls == calls{"F2.0", "F2.1", "I2.0", "W2.0", "I2.1", "W2.1", "S2.0"});
  CHECK(sent_shares(here) == std::vector{share(here, 0, 0, 2)});
  here.model->calls.clear();

  here.tensor_comes(share(here, 2, 1, 1));  // of the second reduction, early
  CHECK(here.model->calls.empty());
  here.tensor_comes(share(here, 2, 0, 0));
  CHECK(here.model->calls == calls{"R2.0", "S2.1"});
  CHECK(sent_shares(here) == std::vector{share(here, 0, 0, 2), share(here, 0, 1, 2), share(here, 1, 1, 2)});
  CHECK(here.steps_done().empty());
  here.tensor_comes(share(here, 2, 1, 0));
  CHECK(here.model->calls == calls{"R2.0", "S2.1", "R2.1", "A2@0"});
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("a stage that takes part in the second reduction only gives its share at once") {
  one_device here(3, 3, 1);
  with_reductions(here, 3);
  here.begin();
  here.give(here.training(0, 1));
  gradients_come(here, 1);
  CHECK(sent_shares(here) == std::vector{share(here, 0, 1, 1), share(here, 2, 1, 1)});
  here.tensor_comes(share(here, 1, 1, 2));
  here.model->calls.clear();
  here.tensor_comes(share(here, 1, 1, 0));
  CHECK(here.model->calls == calls{"R1.1", "A1@0"});
}

TEST_CASE("stages on one device combine without the transport, and all take the same sum") {
  auto weights = [](one_device& here, std::vector<std::shared_ptr<fake_program>> programs) {
    begin_generation order{1, here.job, {}, here.scheduler.handle(), here.loader.handle(), 0};
    for (int stage = 0; stage < 3; ++stage)
      order.stages.push_back({stage, programs[static_cast<std::size_t>(stage)], here.owner.handle()});
    here.actors.send(here.device, order);
    here.give(here.training(0, 2));
    here.batch_comes(0);
    here.batch_comes(1);
    std::vector<float> values;
    for (auto& program : programs) values.push_back(program->parameters()[0].value.values<float>()[0]);
    return values;
  };
  auto programs = [](const one_device& here) {
    std::vector<std::shared_ptr<fake_program>> made;
    for (int stage = 0; stage < 3; ++stage) made.push_back(std::make_shared<fake_program>(here.model, stage));
    return made;
  };
  one_device here(3, 1, 0), plain(3, 1, 0);
  with_reductions(here, 1);
  auto reduced = weights(here, programs(here));
  CHECK(here.steps_done() == steps{0, 1});
  CHECK(here.out.tensors.empty());
  CHECK(reduced != weights(plain, programs(plain)));
  // All three took the same sum; what they began with differs by an eighth.
  CHECK(reduced[1] - reduced[0] == 0.125f);
}

TEST_CASE("shares are combined in the order of stages, whatever the order of arrival") {
  auto state_after = [](std::vector<std::uint32_t> arrivals) {
    one_device here(3, 3, 2);
    with_reductions(here, 3);
    here.begin();
    here.give(here.training(0, 1, {{1, 0}}));
    here.batch_comes(0);
    gradients_come(here, 2);
    here.tensor_comes(share(here, 2, 0, 0));
    for (auto from : arrivals)
      here.actors.send(here.device,
                       tensor_arrived{share(here, 2, 1, from), tensor::full({1}, from == 0 ? 1.0f : 3.0f)});
    return here.owner.last<state_copied>().packed.clone();
  };
  CHECK(same_bits(state_after({0, 1}), state_after({1, 0})));
}

TEST_CASE("shares of an interrupted generation are not used in the next one") {
  one_device here(3, 3, 1);
  with_reductions(here, 3);
  here.begin();
  here.give(here.training(0, 1));
  gradients_come(here, 1);
  here.tensor_comes(share(here, 1, 1, 0));
  here.tensor_comes(share(here, 1, 1, 2));
  here.stop(2);
  here.begin(2);
  here.give(here.training(0, 1));
  gradients_come(here, 1);
  CHECK(here.model->calls.back() == "S1.1");
  here.tensor_comes({1, 0, 3, 1, 3, tensor_role::share});  // late, of generation 1
  here.tensor_comes(share(here, 1, 1, 2));
  CHECK(here.model->calls.back() == "S1.1");
  here.tensor_comes(share(here, 1, 1, 0));
  CHECK(here.model->calls.back() == "A1@0");
}

TEST_CASE("evaluation reduces nothing") {
  one_device here(3, 3, 1);
  with_reductions(here, 3);
  here.begin();
  here.give({1, {3, call_kind::evaluate, 0, 0, 1, 2}, 0, 1, {}, 0});
  for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(0, 1, microbatch, tensor_role::activation));
  CHECK(here.model->calls == calls{"E1.0", "E1.1"});
  CHECK(here.steps_done() == steps{0});
}
