#include "one_process.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "support/drained.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/job/part_tag.hpp"
#include "troupe/wire/packed_state.hpp"

namespace troupe::testing {

one_process::one_process(int with_rank, int with_world_size, int num_stages)
    : rank(with_rank), world_size(with_world_size), out(with_rank) {
  model->num_stages = num_stages;
  spawn_supervisor(out);
}

one_process::~one_process() {
  gate.close();
  directory.close();
}

void one_process::spawn_supervisor(recording_transport& transport) {
  actors::supervisor::supervisor_options options;
  options.rank = rank;
  options.world_size = world_size;
  options.host = "here";
  options.numeric_class = "class";
  options.out = &transport;
  options.members = &members;
  options.gate = &gate;
  options.directory = &directory;
  options.faults = &faults;
  options.trace = &trace;
  options.fenced = fenced;
  options.client = client;
  options.log =
      std::make_shared<spdlog::logger>("actors", std::make_shared<spdlog::sinks::ostream_sink_st>(log_));
  options.log->set_level(spdlog::level::warn);
  options.threads = actors::supervisor::child_threads::shared;
  options.progress_timeout = progress_timeout;
  options.inspected = inspected;
  options.is_replaced = is_launched;
  options.kill_process = [this] { ++num_kills; };
  supervisor = actors.spawn<actors::actor::actor_of<actors::supervisor::supervisor_state>>(options);
}

void one_process::watch_progress(std::chrono::seconds limit) {
  progress_timeout = limit;
  spawn_supervisor(out);
}

void one_process::inspect() {
  inspected = std::make_shared<actors::inspector::inspected_job>();
  spawn_supervisor(out);
}

void one_process::launch() {
  is_launched = true;
  spawn_supervisor(out);
}

// ---- what the user does

void one_process::define() {
  job = std::make_shared<actors::job::job_definition>();
  job->make_program = fake_programs(model);
  job->place(make_plan({schedule_kind::gpipe, model->num_stages, 2,
                        std::min(model->num_stages, 2 * devices_per_rank)}),
             2);
  hosts = job->home;
  job->snapshots.folder = folder;
  job->description.add("seed", "1");
  actors.send(supervisor, actors::messages::define_job{job});
  actors.send(supervisor, actors::messages::add_source{std::make_shared<fake_source>(0)});
}

void one_process::enter(std::uint32_t index, actors::job::call_kind kind, std::uint64_t target) {
  actors.send(supervisor, actors::messages::enter_call{{index, kind, 0, target, 0, 0}});
}

// ---- what the agent says

void one_process::fence(std::uint64_t generation) {
  fenced->store(generation);
  actors.send(supervisor, actors::messages::fence_raised{generation, {}});
}

void one_process::view(std::uint64_t generation) {
  cluster::membership_view formed{generation, {}};
  for (int member_rank : {0, 1}) {
    cluster::member one;
    one.rank = member_rank;
    one.address = recording_transport::address_of(member_rank, generation);
    formed.members.push_back(one);
  }
  actors.send(supervisor, actors::messages::view_formed{formed});
}

// ---- what the other process says

void one_process::hear_frame(std::uint64_t generation, const actors::link::message_head& head,
                             const caf::message& content) {
  gate.deliver(1 - rank, generation, *encode_message(head, content));
  actors.run();
}

std::vector<caf::message> one_process::replies() const {
  std::vector<caf::message> found;
  for (const auto& frame : out.frames)
    if (auto message = actors::link::decode_message(frame.body);
        message.head.kind == actors::link::message_kind::reply)
      found.push_back(message.content);
  return found;
}

void one_process::restore(std::uint64_t generation, const recovery::restore_plan& plan,
                          const std::vector<actors::job::call_result>& completed) {
  receive(generation, {actors::actor::actor_role::supervisor, static_cast<std::uint32_t>(rank)},
          actors::messages::restore_command{generation, plan, 0, hosts});
  for (const auto& result : completed) finish(generation, result);
}

void one_process::finish(std::uint64_t generation, const actors::job::call_result& result) {
  receive(generation, {actors::actor::actor_role::supervisor, static_cast<std::uint32_t>(rank)},
          actors::messages::call_finished{generation, result});
}

void one_process::give(std::uint64_t generation, std::uint64_t first, std::uint64_t end,
                       std::vector<actors::messages::due_copy> copies, std::uint32_t call) {
  receive(
      generation, {actors::actor::actor_role::device, 1},
      actors::messages::step_credit{
          generation, {call, actors::job::call_kind::train, 0, 100, 0, 0}, first, end, std::move(copies), 0});
}

void one_process::activations_come(std::uint64_t generation, std::uint64_t step, std::uint32_t call) {
  for (std::uint32_t microbatch : {0u, 1u})
    directory.deliver({generation, step, call, 1, microbatch, transport::tensor_role::activation},
                      tensor::full({2, 1}, 1));
  actors.run();
}

void one_process::part_arrives(std::uint64_t generation, std::uint64_t step, int stage,
                               const tensor& packed) {
  bool restores = host_of(job->placed, hosts, {.stage = stage}) == world_rank{rank};
  auto role = restores ? transport::tensor_role::restored_state : transport::tensor_role::snapshot_part;
  directory.deliver(actors::job::part_tag(role, generation, step, 0, {{stage}}), packed);
  actors.run();
}

// ---- what the other process hears

std::vector<caf::message> one_process::sent_messages() const {
  std::vector<caf::message> contents;
  for (const auto& frame : out.frames) contents.push_back(actors::link::decode_message(frame.body).content);
  return contents;
}

recording_transport::sent_tensor one_process::last_part() const {
  for (auto sent = out.tensors.rbegin(); sent != out.tensors.rend(); ++sent)
    if (sent->tag.role == transport::tensor_role::snapshot_part) return *sent;
  throw std::runtime_error("no part was sent");
}

std::vector<std::uint64_t> one_process::steps_done(std::uint64_t generation) const {
  std::vector<std::uint64_t> steps;
  for (const auto& done : sent<actors::messages::step_done>())
    if (done.generation == generation) steps.push_back(done.step);
  return steps;
}

// ---- events for the program

std::vector<std::string> one_process::failures_told() {
  std::vector<std::string> causes;
  for (const auto& event : drained(*client))
    if (auto* failed = std::get_if<actors::job::job_failure>(&event)) causes.push_back(failed->cause);
  return causes;
}

std::vector<std::uint32_t> one_process::results_told() {
  std::vector<std::uint32_t> told;
  for (const auto& event : drained(*client))
    if (auto* result = std::get_if<actors::job::call_result>(&event)) told.push_back(result->index);
  return told;
}

// ---- a life

void one_process::begin() {
  define();
  view(1);
  enter(0);
  restore(1);
}

void one_process::train(std::uint64_t num_steps) {
  std::vector<actors::messages::due_copy> copies;
  for (std::uint64_t step = 1; step <= num_steps; ++step) copies.push_back({step, 0});
  give(1, 0, num_steps, copies);
  for (std::uint64_t step = 0; step < num_steps; ++step) activations_come(1, step);
}

tensor packed_with(float weight, std::uint64_t steps, int stage) {
  wire::packed_state_pool pool;
  auto name = std::to_string(stage);
  return pack_state({{name + ".weight", tensor::full({1}, weight)},
                     {name + ".moment", tensor::zeros({1})},
                     {name + ".steps", tensor::full({1}, static_cast<float>(steps))}},
                    pool);
}

recovery::restore_plan plan_of(std::uint64_t step, recovery::restore_source first,
                               recovery::restore_source second) {
  return {step, false, {first, second}};
}

recovery::restore_source from(int stage, std::int32_t rank, recovery::part_location place) {
  return {{stage}, rank, place};
}

recovery::restore_plan own_plan(std::uint64_t step) {
  return plan_of(step, from(0, 0, own), from(1, 1, own));
}

actors::job::call_result result_of(std::uint32_t index) {
  actors::job::call_result result;
  result.index = index;
  return result;
}

}  // namespace troupe::testing
