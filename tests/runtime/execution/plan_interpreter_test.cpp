#include "troupe/execution/plan_interpreter.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "runtime/execution/traced_program.hpp"

using namespace troupe;
using namespace troupe::execution;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A stage that gives what a test says.
class scripted_program : public program::stage_program {
 public:
  std::vector<tensor> outputs, input_gradients;
  std::string found;  ///< the infinite or NaN value that was found; empty: none
  std::vector<tensor> seen_inputs, seen_gradients;
  int num_applied = 0;

  std::vector<tensor> forward(const program::microbatch&, std::vector<tensor> inputs, tensor) override {
    seen_inputs = std::move(inputs);
    return outputs;
  }
  std::vector<tensor> backward_input(const program::microbatch&, std::vector<tensor> gradients) override {
    seen_gradients = std::move(gradients);
    return input_gradients;
  }
  void backward_weight(const program::microbatch&) override {}
  tensor partial_for_reduction(int) override { return tensor::zeros({1}); }
  void reduce(int, const std::vector<tensor>&) override {}
  std::string non_finite() override { return found; }
  void apply(std::uint64_t) override { ++num_applied; }
  void discard() override {}
  program::step_metrics take_metrics() override { return {}; }
  std::vector<named_tensor> state() override { return {}; }
  std::vector<named_tensor> parameters() override { return {}; }
  void load_state(const std::vector<named_tensor>&) override {}
};

/// Device 0 of a plan, whose stages are scripted; what happens is noted in order.
struct scripted_device : action_host {
  std::vector<std::string> events;
  std::vector<transport::tensor_tag> sent;
  std::vector<tensor> sent_values;
  std::optional<batch> loaded;
  bool applies_non_finite = false;
  std::map<int, scripted_program> stages;
  inbox box;
  plan_interpreter interpreter;

  explicit scripted_device(plan running, pass_kind pass = pass_kind::train)
      : interpreter(
            {.running = std::move(running), .device = 0, .pass = pass, .generation = 3, .call = 4},
            [this](int stage) -> program::stage_program& { return stages[stage]; }, box, *this) {
    interpreter.begin_step(7);
  }

  const batch* samples() override { return loaded ? &*loaded : nullptr; }
  void send(const transport::tensor_tag& tag, tensor value) override {
    events.push_back("send to " + std::to_string(tag.stage));
    sent.push_back(tag);
    sent_values.push_back(std::move(value));
  }
  void on_prediction(const action& op, const tensor&) override {
    events.push_back("predicted " + to_string(op));
  }
  void on_begin(const action& op) override { events.push_back("begin " + to_string(op)); }
  void on_end(const action& op) override { events.push_back("end " + to_string(op)); }
  bool on_non_finite(const action& op, const std::string& what) override {
    events.push_back(to_string(op) + ": " + what);
    return applies_non_finite;
  }

  void load() { loaded = traced_samples(interpreter.running(), 0); }
  void run() {
    while (!interpreter.is_at_end() && interpreter.run_next()) continue;
  }
};

/// A stage of passes, which has no parameters.
struct passes_only final : program::stage_compute {
  int num_forwards = 0;
  std::vector<tensor> forward(const program::microbatch&, std::vector<tensor>, tensor) override {
    ++num_forwards;
    return {};
  }
  std::vector<tensor> backward_input(const program::microbatch&, std::vector<tensor>) override { return {}; }
  void backward_weight(const program::microbatch&) override {}
  void discard() override {}
  program::step_metrics take_metrics() override { return {}; }
};

using texts = std::vector<std::string>;

tensor number(float value) { return tensor::full({1}, value); }

/// Stage 0 gives one tensor to stage 1 and, beside it, to stage 2.
plan forked(int num_devices, std::vector<int> device_of_stage) {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = 3,
                    .num_microbatches = 1,
                    .num_devices = num_devices,
                    .edges = {{0, 0, 1, 0}, {0, 0, 2, 0}, {1, 0, 2, 1}},
                    .device_of_stage = std::move(device_of_stage)});
}

plan chain(int num_stages, int num_devices, std::vector<schedule::reduction> reductions = {}) {
  return make_plan({.kind = schedule_kind::gpipe,
                    .num_stages = num_stages,
                    .num_microbatches = 1,
                    .num_devices = num_devices,
                    .reductions = std::move(reductions)});
}

}  // namespace

TEST_CASE("a plan of forwards runs on stages that have passes only, and an optimizer step does not") {
  passes_only stage;
  scripted_device host(chain(1, 1));  // for what the interpreter asks its host
  host.load();
  auto run = [&](const plan& running, pass_kind pass) {
    plan_interpreter interpreter(
        {.running = running, .pass = pass}, [&stage](int) { return running_stage(stage); }, host.box, host);
    interpreter.begin_step(0);
    while (!interpreter.is_at_end() && interpreter.run_next()) continue;
    return interpreter.is_at_end();
  };
  CHECK(run(forward_projection(chain(1, 1), 1), pass_kind::evaluate));
  CHECK(stage.num_forwards == 1);
  CHECK_THROWS_WITH(run(chain(1, 1), pass_kind::train),
                    ContainsSubstring("expected a program with parameters for the training of stage 0"));
}

TEST_CASE("an action runs when its inputs are there, and not before") {
  scripted_device device(chain(2, 2));
  device.stages[0].outputs = {number(1)};
  CHECK(device.interpreter.needs_samples());
  CHECK_FALSE(device.interpreter.run_next());
  CHECK(device.events.empty());
  device.load();
  device.run();
  CHECK_FALSE(device.interpreter.needs_samples());
  CHECK(device.events == texts{"begin 0F0", "end 0F0", "send to 1"});
  CHECK(device.sent ==
        std::vector{transport::tensor_tag{3, 7, 4, 1, 0, transport::tensor_role::activation, 0}});
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 0}, number(1));
  device.run();
  CHECK(device.interpreter.is_at_end());
  CHECK(device.events.back() == "end 0A");
  CHECK(device.stages[0].num_applied == 1);
}

TEST_CASE("an output goes to all stages that take it, and its gradient is the sum of theirs") {
  scripted_device device(forked(2, {0, 1, 1}));
  device.load();
  device.stages[0].outputs = {number(1)};
  device.run();
  CHECK(device.sent ==
        std::vector{transport::tensor_tag{3, 7, 4, 1, 0, transport::tensor_role::activation, 0},
                    transport::tensor_tag{3, 7, 4, 2, 0, transport::tensor_role::activation, 0}});
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 1}, number(4));
  CHECK_FALSE(device.interpreter.run_next());
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 0}, number(2));
  device.run();
  REQUIRE(device.stages[0].seen_gradients.size() == 1);
  CHECK(device.stages[0].seen_gradients[0].values<float>()[0] == 6);
}

TEST_CASE("a gradient that is undefined, since nothing is learned there, adds nothing") {
  for (int undefined : {0, 1}) {
    scripted_device device(forked(2, {0, 1, 1}));
    device.load();
    device.stages[0].outputs = {number(1)};
    device.run();
    for (std::uint32_t edge : {0u, 1u})
      device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, edge},
                     std::cmp_equal(edge, undefined) ? tensor() : number(5));
    device.run();
    CHECK(device.stages[0].seen_gradients[0].values<float>()[0] == 5);
  }
}

TEST_CASE("a gradient that is undefined goes to another device with elements, and is undefined there") {
  scripted_device receiver(forked(2, {1, 1, 0}));
  receiver.load();
  receiver.stages[2].input_gradients = {tensor(), number(2)};
  for (std::uint32_t port : {0u, 1u})
    receiver.box.put({3, 7, 4, 2, 0, transport::tensor_role::activation, port}, number(1));
  receiver.run();
  REQUIRE(receiver.sent_values.size() == 2);
  for (const auto& each : receiver.sent_values) CHECK(each.defined());

  scripted_device sender(forked(2, {0, 1, 1}));
  sender.load();
  sender.stages[0].outputs = {number(1)};
  sender.run();
  sender.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 0}, receiver.sent_values[0]);
  sender.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 1}, receiver.sent_values[0]);
  sender.run();
  REQUIRE(sender.stages[0].seen_gradients.size() == 1);
  CHECK_FALSE(sender.stages[0].seen_gradients[0].defined());
}

TEST_CASE("gradients come back on the edges that the inputs came by") {
  scripted_device device(forked(2, {1, 1, 0}));
  device.load();
  device.stages[2].input_gradients = {number(1), number(2)};
  device.box.put({3, 7, 4, 2, 0, transport::tensor_role::activation, 0}, number(1));
  device.box.put({3, 7, 4, 2, 0, transport::tensor_role::activation, 1}, number(1));
  device.run();
  CHECK(device.sent ==
        std::vector{transport::tensor_tag{3, 7, 4, 0, 0, transport::tensor_role::gradient, 1},
                    transport::tensor_tag{3, 7, 4, 1, 0, transport::tensor_role::gradient, 0}});
}

TEST_CASE("a stage contributes to a reduction right after its action before it") {
  scripted_device device(chain(2, 2, {{0, 1}, {0}}));
  device.load();
  device.stages[0].outputs = {number(1)};
  device.run();
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 0}, number(1));
  device.events.clear();
  device.run();
  CHECK(device.events == texts{"begin 0B0", "end 0B0", "send to 1"});
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::reduction_partial, 1}, number(1));
  device.run();
  CHECK(texts(device.events.begin() + 3, device.events.end()) ==
        texts{"begin 0R0", "end 0R0", "begin 0R1", "end 0R1", "begin 0A", "end 0A"});
}

TEST_CASE(
    "an infinite or NaN value halts the plan before the optimizer's step, or is applied as the host "
    "decides") {
  for (bool applies : {false, true}) {
    scripted_device device(chain(1, 1));
    device.applies_non_finite = applies;
    device.stages[0].found = "the loss";
    device.load();
    device.run();
    CHECK(device.interpreter.is_halted() != applies);
    CHECK(device.interpreter.is_at_end() == applies);
    CHECK(device.stages[0].num_applied == (applies ? 1 : 0));
    CHECK(std::ranges::count(device.events, "0A: the loss") == 1);
    CHECK_FALSE((!applies && device.interpreter.run_next()));
  }
}

TEST_CASE("predictions go to the host, without targets") {
  scripted_device device(forward_projection(chain(2, 2), 2), pass_kind::predict);
  device.load();
  device.stages[0].outputs = {number(1)};
  device.run();
  CHECK(std::ranges::count(device.events, "send to 1") == 2);
  scripted_device last(forward_projection(chain(1, 1), 2), pass_kind::predict);
  last.load();
  last.stages[0].outputs = {number(1)};
  last.run();
  CHECK(last.events ==
        texts{"begin 0F0", "end 0F0", "predicted 0F0", "begin 0F1", "end 0F1", "predicted 0F1"});
}

TEST_CASE("a program that gives too many or too few tensors is refused by stage and ports") {
  scripted_device device(chain(2, 2));
  device.load();
  CHECK_THROWS_WITH(device.run(),
                    ContainsSubstring("expected 1 outputs of stage 0, one for each output port, got 0"));

  scripted_device last(forked(2, {1, 1, 0}));
  last.load();
  last.box.put({3, 7, 4, 2, 0, transport::tensor_role::activation, 0}, number(1));
  last.box.put({3, 7, 4, 2, 0, transport::tensor_role::activation, 1}, number(1));
  last.stages[2].input_gradients = {number(1)};
  CHECK_THROWS_WITH(
      last.run(), ContainsSubstring("expected 2 input gradients of stage 2, one for each input port, got 1"));

  scripted_device loss(chain(1, 1));
  loss.load();
  loss.stages[0].outputs = {number(1)};
  CHECK_THROWS_WITH(loss.run(), ContainsSubstring("expected 0 outputs of stage 0"));
}

TEST_CASE("gradients of one output are added from the last edge to the first") {
  scripted_device device(
      make_plan({.kind = schedule_kind::gpipe,
                 .num_stages = 4,
                 .num_microbatches = 1,
                 .num_devices = 2,
                 .edges = {{0, 0, 1, 0}, {0, 0, 2, 0}, {0, 0, 3, 0}, {1, 0, 3, 1}, {2, 0, 3, 2}},
                 .device_of_stage = {0, 1, 1, 1}}));
  device.load();
  device.stages[0].outputs = {number(1)};
  device.run();
  // In f32: (1 + 2^24) - 2^24 is 0, and (-2^24 + 2^24) + 1 is 1.
  auto large = 16777216.0F;
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 0}, number(1));
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 1}, number(large));
  device.box.put({3, 7, 4, 0, 0, transport::tensor_role::gradient, 2}, number(-large));
  device.run();
  CHECK(device.stages[0].seen_gradients.at(0).values<float>()[0] == 1);
}

TEST_CASE("a tensor for several input ports of a stage is sent once, and each port has its own gradient") {
  auto options = plan_options{.kind = schedule_kind::gpipe,
                              .num_stages = 2,
                              .num_devices = 2,
                              .edges = {{0, 0, 1, 0}, {0, 1, 1, 1}, {0, 0, 1, 2}}};
  scripted_device first(make_plan(options));
  first.load();
  first.stages[0].outputs = {number(1), number(2)};
  first.run();
  CHECK(first.sent ==
        std::vector{transport::tensor_tag{3, 7, 4, 1, 0, transport::tensor_role::activation, 0},
                    transport::tensor_tag{3, 7, 4, 1, 0, transport::tensor_role::activation, 1}});
  options.device_of_stage = {1, 0};
  scripted_device second(make_plan(options));
  second.load();
  second.box.put({3, 7, 4, 1, 0, transport::tensor_role::activation, 1}, number(2));
  second.box.put({3, 7, 4, 1, 0, transport::tensor_role::activation, 0}, number(1));
  second.stages[1].input_gradients = {number(1), number(1), number(1)};
  second.run();
  REQUIRE(second.stages[1].seen_inputs.size() == 3);
  for (auto [port, value] : {std::pair(0u, 1.0F), std::pair(1u, 2.0F), std::pair(2u, 1.0F)})
    CHECK(second.stages[1].seen_inputs[port].values<float>()[0] == value);
  CHECK(second.sent ==
        std::vector{transport::tensor_tag{3, 7, 4, 0, 0, transport::tensor_role::gradient, 0},
                    transport::tensor_tag{3, 7, 4, 0, 0, transport::tensor_role::gradient, 2},
                    transport::tensor_tag{3, 7, 4, 0, 0, transport::tensor_role::gradient, 1}});
}

TEST_CASE("a tensor of another form than the edge has is refused by edge, with both forms") {
  auto two_microbatches =
      make_plan({.kind = schedule_kind::gpipe, .num_stages = 2, .num_microbatches = 2, .num_devices = 2});
  scripted_device sender(two_microbatches);
  sender.load();
  sender.stages[0].outputs = {number(1)};
  REQUIRE(sender.interpreter.run_next());
  sender.stages[0].outputs = {tensor::zeros({2})};
  CHECK_THROWS_WITH(sender.run(),
                    ContainsSubstring("expected f32[1], as for the microbatches of this step") &&
                        ContainsSubstring("edge 0.0 -> 1.0") && ContainsSubstring("got f32[2]") &&
                        ContainsSubstring("microbatch 1"));
  sender.stages[0].outputs = {tensor()};
  CHECK_THROWS_WITH(sender.run(), ContainsSubstring("expected a tensor over edge 0.0 -> 1.0") &&
                                      ContainsSubstring("undefined"));
  // Agreed on again in the next step.
  sender.interpreter.begin_step(8);
  sender.stages[0].outputs = {tensor::zeros({2})};
  CHECK(sender.interpreter.run_next());

  auto placed =
      make_plan({.kind = schedule_kind::gpipe, .num_stages = 2, .num_devices = 2, .device_of_stage = {1, 0}});
  scripted_device receiver(placed);
  receiver.load();
  receiver.box.put({3, 7, 4, 1, 0, transport::tensor_role::activation, 0}, tensor::zeros({5, 2}));
  receiver.stages[1].input_gradients = {tensor::zeros({2, 5})};
  CHECK_THROWS_WITH(receiver.run(), ContainsSubstring("expected a gradient f32[5, 2], like the tensor") &&
                                        ContainsSubstring("edge 0.0 -> 1.0") &&
                                        ContainsSubstring("got f32[2, 5]"));
}
