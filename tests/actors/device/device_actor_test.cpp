#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <random>

#include "one_device.hpp"
#include "support/bits.hpp"
#include "troupe/messages/stage.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE(
    "a device in the middle computes each action as soon as its inputs are there, in the order of its plan") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(here.training(0, 1));
  CHECK(here.model->calls.empty());

  here.tensor_comes(here.tag(0, 1, 1, transport::tensor_role::activation));  // microbatch 1 before 0
  CHECK(here.model->calls.empty());
  here.tensor_comes(here.tag(0, 1, 1, transport::tensor_role::gradient));
  CHECK(here.model->calls.empty());
  here.tensor_comes(here.tag(0, 1, 0, transport::tensor_role::activation));
  CHECK(here.model->calls == calls{"F1.0", "F1.1"});
  here.tensor_comes(here.tag(0, 1, 0, transport::tensor_role::gradient));
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
        auto role = which & 1 ? transport::tensor_role::gradient : transport::tensor_role::activation;
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
  for (auto microbatch : {0u, 1u})
    here.tensor_comes(here.tag(7, 1, microbatch, transport::tensor_role::activation));
  REQUIRE(here.out.tensors.size() == 2);
  CHECK(here.out.tensors[0].to_rank == 2);
  CHECK(here.out.tensors[0].tag == transport::tensor_tag{5, 7, 3, 2, 0, transport::tensor_role::activation});
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
  for (auto microbatch : {0u, 1u})
    here.tensor_comes(here.tag(0, 1, microbatch, transport::tensor_role::activation));
  here.tensor_comes(here.tag(0, 1, 0, transport::tensor_role::gradient));
  CHECK(sent_before_weights == 3);
  CHECK(here.out.tensors[2].to_rank == 0);
  CHECK(here.out.tensors[2].tag == transport::tensor_tag{1, 0, 3, 0, 0, transport::tensor_role::gradient});
}

TEST_CASE("the first stage takes the rows of its microbatch, and sends no gradient on") {
  one_device here(2, 2, 0);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  REQUIRE(here.out.tensors.size() == 2);
  auto inputs = fake_source(0).at(0).inputs;
  CHECK(same_bits(here.out.tensors[0].value, inputs.rows(0, 2)));
  CHECK(same_bits(here.out.tensors[1].value, inputs.rows(2, 2)));
  for (auto microbatch : {0u, 1u})
    here.tensor_comes(here.tag(0, 0, microbatch, transport::tensor_role::gradient));
  CHECK(here.out.tensors.size() == 2);
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("the last stage waits for its targets, starts from its loss and reports the metrics") {
  one_device here(2, 2, 1);
  here.begin();
  here.give(here.training(0, 1));
  for (auto microbatch : {0u, 1u})
    here.tensor_comes(here.tag(0, 1, microbatch, transport::tensor_role::activation));
  CHECK(here.model->calls.empty());
  here.batch_arrives(0);
  CHECK(here.model->calls == calls{"F1.0", "F1.1", "I1.0", "W1.0", "I1.1", "W1.1", "A1@0"});
  auto done = here.scheduler.last<actors::messages::step_done>();
  CHECK(done.metrics.num_samples == 4);
  CHECK(done.metrics.loss_sum > 0);
  REQUIRE(here.out.tensors.size() == 2);
  CHECK(here.out.tensors[0].tag == transport::tensor_tag{1, 0, 3, 0, 0, transport::tensor_role::gradient});
}

TEST_CASE("other stages report no metrics") {
  one_device here(3, 3, 1);
  here.begin();
  here.give(here.training(0, 1));
  for (auto role : {transport::tensor_role::activation, transport::tensor_role::gradient})
    for (auto microbatch : {0u, 1u}) here.tensor_comes(here.tag(0, 1, microbatch, role));
  CHECK(here.scheduler.last<actors::messages::step_done>().metrics == program::step_metrics{});
}

TEST_CASE("stages on one device hand tensors to each other without the transport") {
  one_device here(4, 2, 1);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  for (auto microbatch : {0u, 1u})
    here.tensor_comes(here.tag(0, 2, microbatch, transport::tensor_role::activation));
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
  for (std::uint64_t step : {1, 0, 2}) here.batch_arrives(step);
  CHECK(here.steps_done() == steps{0, 1, 2});
  CHECK(here.out.tensors.empty());
}

TEST_CASE(
    "a report names its generation, call and device, and the last report of a call holds the timeline") {
  one_device here(1, 1, 0);
  here.begin(4);
  auto given = here.training(0, 2);
  given.call.target_step = 2;
  here.give(given);
  here.batch_arrives(0);
  auto first = here.scheduler.last<actors::messages::step_done>();
  CHECK(first.generation == 4);
  CHECK(first.call == 3);
  CHECK(first.device == 0);
  CHECK(first.actions.size() == 4);  // step_sampling takes the first step
  CHECK(first.peak_activations == 2);
  CHECK(first.busy_ns > 0);
  CHECK(first.last_end_ns - first.first_begin_ns >= first.busy_ns);
  here.batch_arrives(1);
  auto last = here.scheduler.last<actors::messages::step_done>();
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
  place_on_ranks(*here.job);
}

transport::tensor_tag share(const one_device& here, std::uint32_t to_stage, std::uint32_t reduction,
                            int from_stage) {
  auto tag = here.tag(0, to_stage, reduction, transport::tensor_role::reduction_partial);
  const auto& stages = here.job->training.reductions[reduction].stages;
  tag.port = static_cast<std::uint32_t>(std::ranges::find(stages, from_stage) - stages.begin());
  return tag;
}

std::vector<transport::tensor_tag> sent_shares(const one_device& here) {
  std::vector<transport::tensor_tag> tags;
  for (const auto& sent : here.out.tensors)
    if (sent.tag.role == transport::tensor_role::reduction_partial) tags.push_back(sent.tag);
  return tags;
}

void gradients_come(one_device& here, std::uint32_t stage) {
  for (auto microbatch : {0u, 1u}) {
    if (stage > 0) here.tensor_comes(here.tag(0, stage, microbatch, transport::tensor_role::activation));
    if (stage < 2) here.tensor_comes(here.tag(0, stage, microbatch, transport::tensor_role::gradient));
  }
}

}  // namespace

TEST_CASE(
    "a stage sends its share after its last weight gradient and waits for the shares of all other stages") {
  one_device here(3, 3, 2);
  with_reductions(here, 3);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_arrives(0);
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

TEST_CASE("a stage that takes part only in the second reduction sends its share at once") {
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
    actors::messages::begin_generation command{
        1, here.job, {}, here.scheduler.handle(), here.loader.handle()};
    for (int stage = 0; stage < 3; ++stage)
      command.stages.push_back({stage, programs[static_cast<std::size_t>(stage)], here.owner.handle()});
    here.actors.send(here.device, command);
    here.give(here.training(0, 2));
    here.batch_arrives(0);
    here.batch_arrives(1);
    std::vector<float> values;
    for (auto& program : programs) values.push_back(program->parameters()[0].value.values<float>()[0]);
    return values;
  };
  auto programs = [](const one_device& here) {
    std::vector<std::shared_ptr<fake_program>> made;
    for (int stage = 0; stage < 3; ++stage)
      made.push_back(std::make_shared<fake_program>(here.model, layout::cell{.stage = stage}));
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
  auto state_after = [](std::vector<int> arrivals) {
    one_device here(3, 3, 2);
    with_reductions(here, 3);
    here.begin();
    here.give(here.training(0, 1, {{1, 0}}));
    here.batch_arrives(0);
    gradients_come(here, 2);
    here.tensor_comes(share(here, 2, 0, 0));
    for (auto from : arrivals)
      here.actors.send(here.device, actors::messages::tensor_arrived{
                                        share(here, 2, 1, from), tensor::full({1}, from == 0 ? 1.0f : 3.0f)});
    return here.owner.last<actors::messages::state_copied>().packed.clone();
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
  here.tensor_comes({1, 0, 3, 1, 1, transport::tensor_role::reduction_partial, 0});  // late, of generation 1
  here.tensor_comes(share(here, 1, 1, 2));
  CHECK(here.model->calls.back() == "S1.1");
  here.tensor_comes(share(here, 1, 1, 0));
  CHECK(here.model->calls.back() == "A1@0");
}

TEST_CASE("evaluation reduces nothing") {
  one_device here(3, 3, 1);
  with_reductions(here, 3);
  here.begin();
  here.give({1, {3, actors::job::call_kind::evaluate, 0, 0, 1, 2}, 0, 1, {}, 0});
  for (auto microbatch : {0u, 1u})
    here.tensor_comes(here.tag(0, 1, microbatch, transport::tensor_role::activation));
  CHECK(here.model->calls == calls{"E1.0", "E1.1"});
  CHECK(here.steps_done() == steps{0});
}

namespace {

/// The device of the second of two replicas of one stage, which are hosted by so many processes. It has
/// begun.
struct second_replica : one_device {
  explicit second_replica(int num_processes) : one_device(1, 1, 1) {
    job->training = make_plan({.kind = schedule_kind::gpipe,
                               .num_stages = 1,
                               .num_microbatches = 2,
                               .num_devices = 1,
                               .num_replicas = 2});
    job->placed = mesh::place_cells(job->training);
    job->hosts = spread(job->placed, mesh::view_of_world(num_processes));
    auto program = std::make_shared<fake_program>(model, layout::cell());
    actors.send(device, actors::messages::begin_generation{
                            1, job, {{0, program, owner.handle()}}, scheduler.handle(), loader.handle(), 2});
  }
};

bool is_part_of(const tensor& part, const tensor& whole) {
  auto all = whole.bytes(), own = part.bytes();
  return own.data() >= all.data() && own.data() + own.size() <= all.data() + all.size();
}

}  // namespace

TEST_CASE(
    "gradients and sums are in memory that other processes read where these have replicas of the stage") {
  for (int num_processes : {1, 2}) {
    second_replica here(num_processes);
    bool is_shared = num_processes == 2;
    CHECK(here.out.shared.size() == (is_shared ? 1 : 0));  // the program's, see fake_program
    here.give(here.training(0, 1));
    here.batch_arrives(0);
    auto gradient = here.tag(0, 0, 0, transport::tensor_role::replica_gradients);
    gradient.replica = 1;
    here.actors.send(here.device, actors::messages::tensor_arrived{gradient, tensor::full({1}, 1)});
    auto sent = std::ranges::find(here.out.tensors, transport::tensor_role::summed_gradients,
                                  [](const auto& each) { return each.tag.role; });
    REQUIRE(sent != here.out.tensors.end());
    CHECK(here.out.shared.size() == (is_shared ? 2 : 0));
    if (is_shared) CHECK(is_part_of(sent->value, here.out.shared.back()));
  }
}
