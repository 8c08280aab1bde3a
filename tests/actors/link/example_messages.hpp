#pragma once
#include <tuple>

#include "troupe/messages/device.hpp"
#include "troupe/messages/gatherer.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/messages/link.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/messages/supervisor_commands.hpp"

namespace troupe::testing {

enum class fields { empty, full, large };

inline actors::job::call_result example_result(fields size) {
  if (size == fields::empty) return {};
  actors::job::call_result result;
  result.index = 7;
  result.steps_done = ~0ull;
  result.metrics = {1.5, -3, 9};
  result.weights_sha256 = std::string(size == fields::large ? 100'000 : 64, 'a');
  result.timing = {0.1, 0.2, 0.3, 4};
  result.last_step.assign(size == fields::large ? 5'000 : 2,
                          {1, 2, 3, action_kind::weight_gradient, -5, 1ll << 60});
  return result;
}

inline recovery::process_inventory example_inventory(fields size) {
  if (size == fields::empty) return {};
  return {3,
          8,
          std::vector<recovery::held_part>(size == fields::large ? 10'000 : 2,
                                           {1, {{2}}, 3, recovery::part_location::disk}),
          4,
          {7, mesh::hosting(std::vector<world_rank>(3, {2}))}};
}

inline recovery::restore_plan example_plan(fields size) {
  if (size == fields::empty) return {};
  return {12, false,
          std::vector<recovery::restore_source>(size == fields::large ? 4'000 : 2,
                                                {{{5}}, -1, recovery::part_location::peer_memory})};
}

inline snapshot::manifest_part example_part_entry(fields size) {
  if (size == fields::empty) return {};
  tensor_contents half{"0.weight", dtype::bf16, {4, 2}, {{{0, 0}, {2, 2}}}, 1, 4, 1};
  return {{{1, 2, 3}, 4}, "file", ~0ull,
          "sum",          "host", std::vector<tensor_contents>(size == fields::large ? 2'000 : 2, half)};
}

inline actors::messages::process_report example_report(fields size) {
  if (size == fields::empty) return {};
  auto many = size == fields::large ? 2'000u : 2u;
  actors::messages::process_report report;
  report.generation = 9;
  report.rank = 3;
  report.incarnation = 4;
  report.pid = 1ll << 40;
  report.host = "host";
  report.children.assign(many, {{actors::actor::child_role::stage, -2, 1, 5}, 1, 3, "out of memory"});
  report.devices.assign(
      many, {7, {1, actors::job::call_kind::train, schedule::device_activity::computing, 5, 6}, 0.5});
  report.device_memory.assign(many, {1, "cuda:0", 2, ~0ull, 4, 5});
  report.bad_frames = ~0ull;
  return report;
}

/// One of every message that crosses processes.
inline auto example_messages(fields size) {
  bool empty = size == fields::empty;
  auto text = [&](char letter) {
    return std::string(empty ? 0 : size == fields::large ? 70'000 : 5, letter);
  };
  actors::job::call_request request =
      empty ? actors::job::call_request{}
            : actors::job::call_request{1, actors::job::call_kind::evaluate, 2, 3, 4, -5};
  std::vector<actors::job::call_result> completed(empty ? 0 : 3, example_result(size));
  std::vector<std::uint32_t> indices(empty ? 0 : 3, 9);
  return std::tuple{
      actors::messages::request_done{},
      actors::messages::request_failed{3, true, text('t')},
      actors::messages::get_cached{3, 1, 5},
      actors::messages::cached_sent{indices},
      actors::messages::restore_command{2, example_plan(size), 1.5,
                                        mesh::hosting(std::vector<world_rank>(empty ? 0 : 3, {2}))},
      actors::messages::call_finished{3, example_result(size)},
      actors::messages::want_results{5},
      actors::messages::inspect_process{9},
      actors::messages::end_actor{4, text('o'), 1, {actors::actor::child_role::device, -2, 3, 4}, 1},
      actors::messages::end_process{4, text('o'), 1, 1},
      actors::messages::set_log_level{4, text('l')},
      actors::messages::command_carried_out{3},
      example_report(size),
      actors::messages::known_results{completed},
      actors::messages::copies_held{4, example_inventory(size)},
      actors::messages::call_entered{4, 2, request, 3, 17},
      actors::messages::process_restored{5, -1, {{0, {0.5, 3, 2}}}},
      actors::messages::snapshot_failed{4, 9},
      actors::messages::write_copies{4, 8},
      actors::messages::replicate_copies{4},
      actors::messages::copies_committed{4, 7},
      actors::messages::replicas_lost{4, 1},
      actors::messages::replicas_wanted{4, 2},
      actors::messages::writes_lost{4, 3},
      actors::messages::step_done{
          6, 1, 2, 3, {0.25, 4, 5}, -1, 2, 3, 4, 5, example_result(size).last_step, text('n')},
      actors::messages::part_held{7, 2, {1, {{2}}, 3, recovery::part_location::peer_memory}},
      actors::messages::part_written{8, 1, example_part_entry(size), text('p')},
      actors::messages::process_progress{
          9, 1,
          std::vector<actors::messages::device_progress>(
              empty ? 0 : 3,
              {1, {2, actors::job::call_kind::train, schedule::device_activity::applying, 3, 4}, 5.5}),
          1, 6.5},
      actors::messages::pause_changed{9,
                                      {4, 17, 1, 1, -5, 2, actors::job::call_kind::predict,
                                       std::vector<plan_position>(empty ? 0 : 3, {5, 6})}},
      actors::messages::pause_requested{
          9, 1, 4, {17, actors::job::pause_command::step, step_unit::action, 3}},
      actors::messages::cut_reached{9, 1, 2, {3, 4}, {0.5, 6, 7}},
      actors::messages::parameters_listed{9, 1, 2, 3, std::vector<std::string>(empty ? 0 : 2, text('n')),
                                          std::vector<std::int64_t>(empty ? 0 : 2, 1 << 20), text('p')},
      actors::messages::parameters_hashed{9, 1, ~0ull, std::vector<std::byte>(empty ? 0 : 104, std::byte{7})},
      actors::messages::hash_parameters{9, 1, 2, ~0ull, std::vector<std::string>(empty ? 0 : 2, text('n')),
                                        std::vector<std::byte>(empty ? 0 : 104, std::byte{7})},
      actors::messages::step_credit{10, request, 1, 2,
                                    std::vector<actors::messages::due_copy>(empty ? 0 : 3, {5, 1}), 6, 7}};
}

}  // namespace troupe::testing
