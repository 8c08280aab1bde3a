#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "actors/virtual_actors.hpp"
#include "support/processes/fake_program.hpp"
#include "support/recording_membership.hpp"
#include "support/recording_transport.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/link/wire_table.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/supervisor/supervisor_actor.hpp"

namespace troupe::testing {

/// One process of a job of two, with a device each, and a stage each unless told otherwise. The other process
/// is what the test says.
struct one_process {
  virtual_actors actors;
  int rank;
  int world_size;
  int devices_per_rank = 1;
  recording_transport out;
  recording_membership members;
  actors::link::inbound_gate gate;
  actors::supervisor::stage_directory directory;
  fault::fault_plan faults;
  std::filesystem::path folder;  ///< for snapshots; empty: none
  trace::trace_recorder trace{0, 64};
  std::shared_ptr<std::atomic<std::uint64_t>> fenced = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<actors::job::client_mailbox> client = std::make_shared<actors::job::client_mailbox>();
  std::shared_ptr<fake_model> model = std::make_shared<fake_model>();
  caf::actor supervisor;
  std::shared_ptr<actors::job::job_definition> job;  ///< the one defined last; nothing changes it later
  mesh::hosting hosts;  ///< what restore commands say; where the job begins unless changed

  explicit one_process(int with_rank = 1, int with_world_size = 2, int num_stages = 2);
  ~one_process();

  /// Takes another supervisor, which sends through `transport`.
  void spawn_supervisor(recording_transport& transport);
  /// Takes another supervisor, which watches its devices.
  void watch_progress(std::chrono::seconds limit);
  std::chrono::seconds progress_timeout{0};
  /// Takes another supervisor, which has an inspector.
  void inspect();
  std::shared_ptr<actors::inspector::inspected_job> inspected;
  /// Takes another supervisor, whose process a launcher replaces.
  void launch();
  bool is_launched = false;
  int num_kills = 0;  ///< how often the process was to be killed

  // what the user does
  void define();
  void enter(std::uint32_t index, actors::job::call_kind kind = actors::job::call_kind::train,
             std::uint64_t target = 10);

  // what the agent says
  void fence(std::uint64_t generation);
  void view(std::uint64_t generation);

  // what the other process says
  template <class Message>
  void receive(std::uint64_t generation, const actors::actor::actor_name& to, const Message& message) {
    hear_frame(generation, {to}, caf::make_message(message));
  }
  /// A request of the other process's scheduler; the supervisor's reply is the newest of replies().
  template <class Message>
  void request(std::uint64_t generation, const actors::actor::actor_name& to, const Message& message) {
    hear_frame(generation, {to, actors::link::message_kind::request, ++num_requests_},
               caf::make_message(message));
  }
  std::vector<caf::message> replies() const;
  void restore(std::uint64_t generation, const recovery::restore_plan& plan = {},
               const std::vector<actors::job::call_result>& completed = {});
  void finish(std::uint64_t generation, const actors::job::call_result& result);
  void give(std::uint64_t generation, std::uint64_t first, std::uint64_t end,
            std::vector<actors::messages::due_copy> copies = {}, std::uint32_t call = 0);
  void activations_come(std::uint64_t generation, std::uint64_t step, std::uint32_t call = 0);
  /// The state of a stage of this process, which restores it, or a replica of another's for the peer copy
  /// store.
  void part_arrives(std::uint64_t generation, std::uint64_t step, int stage, const tensor& packed);

  // what the other process hears
  template <class Message>
  std::vector<Message> sent() const {
    std::vector<Message> found;
    for (const auto& content : sent_messages())
      if (content.template match_elements<Message>()) found.push_back(content.template get_as<Message>(0));
    return found;
  }
  /// The last state copy that went to the peer.
  recording_transport::sent_tensor last_part() const;
  std::vector<std::uint64_t> steps_done(std::uint64_t generation) const;

  /// A job on its first generation, its stages made, its devices waiting for a credit.
  void begin();
  /// Steps of generation 1, with a copy after each.
  void train(std::uint64_t num_steps);
  void advance(std::chrono::nanoseconds time) { actors.advance(time); }
  /// Warnings and errors so far.
  std::string logged() const { return log_.str(); }
  std::vector<std::string> failures_told();
  std::vector<std::uint32_t> results_told();

 private:
  std::ostringstream log_;
  std::uint64_t num_requests_ = 0;
  void hear_frame(std::uint64_t generation, const actors::link::message_head& head,
                  const caf::message& content);
  std::vector<caf::message> sent_messages() const;
};

tensor packed_with(float weight, std::uint64_t steps, int stage = 1);

recovery::restore_plan plan_of(std::uint64_t step, recovery::restore_source first,
                               recovery::restore_source second);
recovery::restore_source from(int stage, std::int32_t rank, recovery::part_location place);
/// Every stage restores its owner's copy.
recovery::restore_plan own_plan(std::uint64_t step);
inline constexpr auto own = recovery::part_location::own_memory;
inline constexpr auto peer = recovery::part_location::peer_memory;

actors::job::call_result result_of(std::uint32_t index);

using numbers = std::vector<std::uint64_t>;
using indices = std::vector<std::uint32_t>;

}  // namespace troupe::testing
