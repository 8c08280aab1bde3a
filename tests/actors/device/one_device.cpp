#include "one_device.hpp"

#include <utility>

#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/loader.hpp"

namespace troupe::testing {

one_device::one_device(int num_stages, int num_devices, int device_number, schedule_kind kind)
    : one_device(make_plan({kind, num_stages, 2, num_devices}), device_number) {}

one_device::one_device(plan training, int device_number) : number(device_number) {
  model->num_stages = training.num_stages;
  model->num_slices = training.mesh.num_slices;
  job->training = std::move(training);
  place_on_ranks(*job);
  device = actors.spawn<actors::actor::actor_of<actors::devices::device_state>>(
      actors::devices::device_options{number, number, &out, &no_faults, &ring, fenced});
}

void one_device::begin(std::uint64_t with_generation, std::uint64_t steps_applied) {
  generation = with_generation;
  actors::messages::begin_generation command{generation, job, {}, scheduler.handle(), {}, world_size};
  for (int stage = 0; stage < model->num_stages; ++stage) {
    auto device_of_replica = job->training.device_of(number);
    if (job->training.device_of_stage[static_cast<std::size_t>(stage)] != device_of_replica) continue;
    auto slice = job->training.mesh.slice_of(job->training.lane_of(number));
    auto program = std::make_shared<fake_program>(model, layout::cell{.stage = stage, .slice = slice});
    program->state()[2].value.values<float>()[0] = static_cast<float>(steps_applied);
    command.stages.push_back({stage, program, owner.handle()});
    if (stage == 0 || stage == model->num_stages - 1) command.loader = loader.handle();
  }
  actors.send(device, command);
  model->calls.clear();
}

actors::messages::step_credit one_device::training(std::uint64_t first, std::uint64_t end,
                                                   std::vector<actors::messages::due_copy> copies,
                                                   std::uint64_t committed) const {
  return {generation, {3, actors::job::call_kind::train, 0, 100, 0, 0}, first, end, std::move(copies),
          committed};
}

void one_device::give(const actors::messages::step_credit& given) { actors.send(device, given); }

void one_device::batch_arrives(std::uint64_t step, std::uint32_t call, std::uint32_t source) {
  actors.send(device, actors::messages::batch_ready{call, source, step,
                                                    fake_source(static_cast<int>(source)).at(step)});
}

void one_device::tensor_comes(const transport::tensor_tag& tag) {
  actors.send(device, actors::messages::tensor_arrived{tag, tensor::full({2, 1}, 0.5f)});
}

answer<actors::messages::stopped> one_device::stop(std::uint64_t at_generation) {
  return ask<actors::messages::stopped>(actors, device, actors::messages::quiesce{at_generation});
}

std::vector<std::uint64_t> one_device::steps_done() const {
  std::vector<std::uint64_t> done;
  for (const auto& report : scheduler.all<actors::messages::step_done>()) done.push_back(report.step);
  return done;
}

}  // namespace troupe::testing
