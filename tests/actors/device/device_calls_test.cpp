#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "one_device.hpp"
#include "support/bits.hpp"
#include "troupe/messages/loader.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/program/device_memory.hpp"
#include "troupe/snapshot/weights_hash.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("a device computes no step beyond the credit") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2));
  for (std::uint64_t step = 0; step < 4; ++step) here.batch_arrives(step);
  CHECK(here.steps_done() == steps{0, 1});
  here.give(here.training(1, 3));
  CHECK(here.steps_done() == steps{0, 1, 2});
  here.give(here.training(2, 4));
  CHECK(here.steps_done() == steps{0, 1, 2, 3});
}

TEST_CASE("credits of another generation are dropped") {
  one_device here(1, 1, 0);
  here.begin(2);
  for (std::uint64_t other : {1, 3}) {
    auto given = here.training(0, 1);
    given.generation = other;
    here.give(given);
  }
  here.batch_arrives(0);
  CHECK(here.model->calls.empty());
  CHECK(here.loader.size() == 0);
}

TEST_CASE("batches are requested ahead of the current step, each once, none beyond the credit") {
  one_device here(1, 1, 0);
  here.begin();
  auto wanted = [&] {
    steps asked;
    for (const auto& want : here.loader.all<actors::messages::want_batch>()) {
      CHECK(want.call == 3);
      CHECK(want.source == 0);
      asked.push_back(want.step);
    }
    return asked;
  };
  here.give(here.training(0, 3));
  CHECK(wanted() == steps{0, 1});
  here.batch_arrives(0);
  CHECK(wanted() == steps{0, 1, 2});
  here.batch_arrives(1);
  here.batch_arrives(2);
  CHECK(wanted() == steps{0, 1, 2});
  here.give(here.training(3, 4));
  CHECK(wanted() == steps{0, 1, 2, 3});
}

TEST_CASE("samples of another call, another source or a finished step are not used") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2));
  here.batch_arrives(0, 2);
  here.batch_arrives(0, 3, 1);
  CHECK(here.model->calls.empty());
  here.batch_arrives(0);
  CHECK(here.steps_done() == steps{0});
  here.batch_arrives(0);
  CHECK(here.steps_done() == steps{0});
}

TEST_CASE("states are copied after the steps for which a copy is due, and not after others") {
  one_device here(2, 1, 0);
  here.begin();
  here.give(here.training(0, 4, {{2, 0}, {3, 1}}));
  for (std::uint64_t step = 0; step < 4; ++step) here.batch_arrives(step);
  auto copies = here.owner.all<actors::messages::state_copied>();
  REQUIRE(copies.size() == 4);  // two stages
  CHECK(copies[0].step == 2);
  CHECK_FALSE(copies[0].to_disk);
  CHECK(copies[2].step == 3);
  CHECK(copies[2].to_disk);
  CHECK(copies[2].generation == 1);
  auto state = wire::unpack_state(copies[3].packed);
  CHECK(state[0].name == "1.weight");
  CHECK(state[2].value.values<float>()[0] == 3);  // steps applied
  auto done = here.scheduler.all<actors::messages::step_done>();
  CHECK(done[0].copy_ns == 0);
  CHECK(done[1].copy_ns > 0);
}

TEST_CASE("a copy of the state does not change while training continues") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 2, {{1, 0}, {2, 0}}));
  here.batch_arrives(0);
  auto first = here.owner.last<actors::messages::state_copied>().packed;
  auto before = first.clone();
  here.batch_arrives(1);
  CHECK(same_bits(first, before));
  CHECK_FALSE(same_bits(here.owner.last<actors::messages::state_copied>().packed, before));
}

TEST_CASE("stages are told of each committed step once, and not of older steps") {
  one_device here(2, 1, 0);
  here.begin();
  here.give(here.training(0, 1, {}, 5));
  here.give(here.training(0, 2, {}, 5));
  here.give(here.training(0, 3, {}, 4));
  CHECK(here.owner.all<actors::messages::drop_before>().size() == 2);  // two stages
  CHECK(here.owner.last<actors::messages::drop_before>().step == 5);
}

TEST_CASE(
    "after a restart from scratch, stages drop old copies although a higher step was committed before") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 1, {}, 50));
  here.begin(2);
  here.give(here.training(0, 1, {}, 3));
  CHECK(here.owner.last<actors::messages::drop_before>().step == 3);
}

TEST_CASE("evaluation runs forward only, in the microbatches of its call") {
  one_device here(2, 2, 1);
  here.begin();
  here.give({1, {3, actors::job::call_kind::evaluate, 1, 0, 2, 4}, 0, 2, {{1, 1}}, 0});
  CHECK(here.loader.last<actors::messages::want_batch>().source == 1);
  here.batch_arrives(0, 3, 1);
  for (auto microbatch : {0u, 1u, 2u, 3u}) {
    here.actors.send(here.device, actors::messages::tensor_arrived{
                                      here.tag(0, 1, microbatch, transport::tensor_role::activation),
                                      tensor::full({1, 1}, 1)});
  }
  CHECK(here.model->calls == calls{"E1.0", "E1.1", "E1.2", "E1.3"});
  CHECK(here.steps_done() == steps{0});
  CHECK(here.scheduler.last<actors::messages::step_done>().metrics.num_samples == 4);
  CHECK(here.out.tensors.empty());
  CHECK(here.owner.all<actors::messages::state_copied>().empty());
}

TEST_CASE("equal replicas run other batches of an evaluation each, of which the last ones may have none") {
  for (int replica : {0, 1}) {
    CAPTURE(replica);
    one_device here(make_plan({.num_microbatches = 2, .num_replicas = 2, .has_equal_replicas = true}),
                    replica);
    here.begin();
    actors::job::call_request call{3, actors::job::call_kind::predict, 1, 0, 3, 2};
    call.num_gathered = 6;
    here.give({1, call, 0, 2, {}, 0});
    steps asked, expected = replica == 0 ? steps{0, 2} : steps{1};
    for (const auto& want : here.loader.all<actors::messages::want_batch>()) asked.push_back(want.step);
    CHECK(asked == expected);
    for (auto batch : expected) {
      here.actors.send(here.device,
                       actors::messages::batch_ready{3, 1, batch, {fake_source(0).at(batch).inputs, {}}});
    }
    CHECK(here.steps_done() == steps{0, 1});
    std::vector<std::uint32_t> given;
    for (const auto& sent : here.out.tensors) given.push_back(sent.tag.microbatch);
    CHECK(given ==
          (replica == 0 ? std::vector<std::uint32_t>{0, 1, 4, 5} : std::vector<std::uint32_t>{2, 3}));
  }
}

TEST_CASE("an evaluation that follows training starts with its own microbatches and source") {
  one_device here(1, 1, 0);
  here.begin();
  here.give({1, {3, actors::job::call_kind::train, 0, 1, 1, 2}, 0, 1, {}, 0});
  here.batch_arrives(0);
  here.model->calls.clear();
  here.give({1, {3, actors::job::call_kind::evaluate, 1, 1, 1, 2}, 0, 1, {}, 0});
  here.batch_arrives(0, 3, 0);  // what training had asked for
  CHECK(here.model->calls.empty());
  here.batch_arrives(0, 3, 1);
  CHECK(here.model->calls == calls{"E0.0", "E0.1"});
  CHECK(here.steps_done() == steps{0, 0});
}

TEST_CASE("training continues with other samples when the credit says so") {
  one_device here(1, 1, 0);
  here.begin();
  here.give(here.training(0, 1));
  here.batch_arrives(0);
  auto given = here.training(1, 2);
  given.call.source = 1;
  here.give(given);
  CHECK(here.loader.last<actors::messages::want_batch>().source == 1);
  here.batch_arrives(1, 3, 0);
  CHECK(here.steps_done() == steps{0});
  here.batch_arrives(1, 3, 1);
  CHECK(here.steps_done() == steps{0, 1});
}

TEST_CASE("for a hash, each stage tells its parameters' names, and hashes them when it is told to") {
  one_device here(4, 2, 1);
  here.begin(6);
  here.give({6, {3, actors::job::call_kind::hash, 0, 0, 0, 0}, 0, 1, {}, 0});
  auto listed = here.scheduler.all<actors::messages::parameters_listed>();
  REQUIRE(listed.size() == 2);
  for (std::uint32_t i : {0u, 1u}) {
    CHECK(listed[i].generation == 6);
    CHECK(listed[i].call == 3);
    CHECK(listed[i].stage == 2 + i);
    CHECK(listed[i].names == std::vector{std::to_string(2 + i) + ".weight"});
  }
  auto begun = snapshot::weights_hasher();
  begun.add(tensor::full({5}, 7));
  auto hash = [&](std::uint64_t generation, std::uint32_t call) {
    here.actors.send(here.device,
                     actors::messages::hash_parameters{generation, call, 3, 2, {"3.weight"}, begun.state()});
  };
  hash(5, 3);
  hash(6, 2);
  here.fenced->store(7);
  hash(6, 3);
  here.fenced->store(6);
  CHECK(here.scheduler.all<actors::messages::parameters_hashed>().empty());
  hash(6, 3);
  CHECK(here.model->calls.empty());
  begun.add(fake_program(here.model, {.stage = 3}).parameters()[0].value);
  auto hashed = here.scheduler.last<actors::messages::parameters_hashed>();
  CHECK(hashed.num_hashed == 3);
  CHECK(hashed.state == begun.state());
  CHECK(here.out.tensors.empty());
}

TEST_CASE("of slices, which compute the same, the first tells metrics and predictions") {
  for (int slice : {0, 1}) {
    CAPTURE(slice);
    one_device here(make_plan({.num_microbatches = 2, .num_slices = 2}), slice);
    here.begin();
    here.give({1, {3, actors::job::call_kind::evaluate, 0, 0, 1, 2}, 0, 1, {}, 0});
    here.batch_arrives(0);
    REQUIRE(here.steps_done() == steps{0});
    CHECK(here.scheduler.last<actors::messages::step_done>().metrics.num_samples == (slice == 0 ? 4 : 0));
    actors::job::call_request call{4, actors::job::call_kind::predict, 1, 0, 1, 2};
    call.num_gathered = 2;
    here.give({1, call, 0, 1, {}, 0});
    here.actors.send(here.device, actors::messages::batch_ready{4, 1, 0, {fake_source(0).at(0).inputs, {}}});
    CHECK(here.steps_done().size() == 2);
    CHECK(here.out.tensors.size() == (slice == 0 ? 2 : 0));
  }
}

TEST_CASE("of gathered weights each slice gives its own, with what they are") {
  one_device here(make_plan({.num_stages = 2, .num_devices = 1, .num_slices = 2}), 1);
  here.begin();
  actors::job::call_request call{3, actors::job::call_kind::gather, 0, 0, 0, 0};
  call.num_gathered = 4;
  here.give({1, call, 0, 1, {}, 0});
  REQUIRE(here.out.tensors.size() == 2);
  CHECK(here.out.tensors[0].tag.microbatch == 2);
  CHECK(here.out.tensors[1].tag.microbatch == 3);
  CHECK(wire::unpack_contents(here.out.tensors[1].value).contents.at(0).name == "1.weight");
}

namespace {

/// Has one of the two halves of its weight.
class half_a_weight : public fake_program {
 public:
  using fake_program::fake_program;
  std::vector<tensor_contents> contents() override {
    auto all = fake_program::contents();
    all[0].whole = {2};
    return all;
  }
};

}  // namespace

TEST_CASE("a device that holds a part of a weight says that it cannot be hashed") {
  one_device here(1, 1, 0);
  actors::messages::begin_generation command{1, here.job, {}, here.scheduler.handle(), here.loader.handle(),
                                             1};
  command.stages.push_back(
      {0, std::make_shared<half_a_weight>(here.model, layout::cell()), here.owner.handle()});
  here.actors.send(here.device, command);
  here.give({1, {3, actors::job::call_kind::hash, 0, 0, 0, 0}, 0, 1, {}, 0});
  CHECK_THAT(here.scheduler.last<actors::messages::parameters_listed>().problem,
             Catch::Matchers::ContainsSubstring("a part of 0.weight: gather the weights"));
}

TEST_CASE("gathered weights go to every process, or to the one process that asks") {
  one_device here(4, 2, 1);
  here.world_size = 3;
  here.begin(6);
  actors::job::call_request call{3, actors::job::call_kind::gather, 0, 0, 0, 0};
  call.num_gathered = 4;
  here.give({6, call, 0, 1, {}, 0});
  REQUIRE(here.out.tensors.size() == 6);
  CHECK(here.out.tensors[4].to_rank == 1);
  CHECK(here.out.tensors[4].tag == transport::tensor_tag{6, 0, 3, 3, 3, transport::tensor_role::gathered});
  CHECK(wire::unpack_state(here.out.tensors[4].value).at(0).name == "3.weight");
  call.index = 4;
  call.receiver = 2;
  here.give({6, call, 0, 1, {}, 0});
  REQUIRE(here.out.tensors.size() == 8);
  CHECK(here.out.tensors[7].to_rank == 2);
}

TEST_CASE("a device tells every process what it holds, once, whatever its stages are") {
  one_device here(4, 2, 1);
  here.world_size = 2;
  here.begin(6);
  actors::job::call_request call{3, actors::job::call_kind::memory, 0, 0, 0, 0};
  call.num_gathered = 2;
  here.give({6, call, 0, 1, {}, 0});
  REQUIRE(here.out.tensors.size() == 2);
  auto told = program::device_memory_from(here.out.tensors[1].value);
  CHECK(here.out.tensors[1].to_rank == 1);
  CHECK(here.out.tensors[1].tag == transport::tensor_tag{6, 0, 3, 0, static_cast<std::uint32_t>(told.device),
                                                         transport::tensor_role::gathered});
  CHECK(told.held == account_statistics());  // charged to nobody here
  CHECK(told.process.peak_resident >= told.process.resident);
  CHECK(told.process.resident > 0);
  CHECK_THROWS_AS(program::device_memory_from(tensor::zeros({3}, dtype::i64)), std::runtime_error);
}

TEST_CASE("predictions are the last stage's outputs, in the order of batches and microbatches") {
  one_device here(1, 1, 0);
  here.begin();
  actors::job::call_request call{3, actors::job::call_kind::predict, 1, 0, 2, 2};
  call.num_gathered = 4;
  here.give({1, call, 0, 2, {}, 0});
  for (std::uint64_t step : {0, 1}) {
    auto samples = fake_source(0).at(step);
    here.actors.send(here.device, actors::messages::batch_ready{3, 1, step, {samples.inputs, {}}});
  }
  CHECK(here.model->calls == calls{"E0.0", "E0.1", "E0.0", "E0.1"});
  REQUIRE(here.out.tensors.size() == 4);
  for (std::uint32_t index = 0; index < 4; ++index) {
    const auto& sent = here.out.tensors[index];
    CHECK(sent.tag == transport::tensor_tag{1, 0, 3, 0, index, transport::tensor_role::gathered});
    auto inputs = fake_source(0).at(index / 2).inputs.rows(index % 2 * 2, 2);
    CHECK(sent.value.values<float>()[1] == inputs.values<float>()[1]);
  }
  CHECK(here.steps_done() == steps{0, 1});
}
