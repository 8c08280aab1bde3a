#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/virtual_actors.hpp"
#include "support/processes/fake_program.hpp"
#include "support/recording_transport.hpp"
#include "troupe/device/device_actor.hpp"
#include "troupe/messages/scheduler.hpp"

namespace troupe::testing {

/// Device d of the job on rank d.
inline void place_on_ranks(actors::messages::device_job& job) {
  job.placed = mesh::place_cells(job.training);
  job.hosts = spread(job.placed, mesh::view_of_world(job.training.num_job_devices()));
}

/// One device of a job, its neighbours being probes: 4 samples a batch in 2 microbatches.
struct one_device {
  virtual_actors actors;
  recording_transport out{1};
  fault::fault_plan no_faults;
  trace::event_ring ring{"device", 1024};
  std::shared_ptr<std::atomic<std::uint64_t>> fenced = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<fake_model> model = std::make_shared<fake_model>();
  std::shared_ptr<actors::messages::device_job> job = std::make_shared<actors::messages::device_job>();
  probe scheduler{actors}, loader{actors}, owner{actors};
  int number;
  int world_size = 1;
  caf::actor device;
  std::uint64_t generation = 1;

  /// Stages are dealt to `num_devices` devices, one to each rank; this is device `device_number`.
  one_device(int num_stages, int num_devices, int device_number, schedule_kind kind = schedule_kind::gpipe);
  one_device(plan training, int device_number);

  /// Attaches stages made anew, as they are after `steps_applied` steps.
  void begin(std::uint64_t with_generation = 1, std::uint64_t steps_applied = 0);
  actors::messages::step_credit training(std::uint64_t first, std::uint64_t end,
                                         std::vector<actors::messages::due_copy> copies = {},
                                         std::uint64_t committed = 0) const;
  void give(const actors::messages::step_credit& given);
  void batch_arrives(std::uint64_t step, std::uint32_t call = 3, std::uint32_t source = 0);
  transport::tensor_tag tag(std::uint64_t step, std::uint32_t stage, std::uint32_t microbatch,
                            transport::tensor_role role) const {
    return {generation, step, 3, stage, microbatch, role};
  }
  void tensor_comes(const transport::tensor_tag& tag);
  answer<actors::messages::stopped> stop(std::uint64_t at_generation);
  std::vector<std::uint64_t> steps_done() const;
};

using calls = std::vector<std::string>;
using steps = std::vector<std::uint64_t>;

}  // namespace troupe::testing
