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

inline call_result example_result(fields size) {
  if (size == fields::empty) return {};
  call_result result;
  result.index = 7;
  result.steps_done = ~0ull;
  result.metrics = {1.5, -3, 9};
  result.weights_sha256 = std::string(size == fields::large ? 100'000 : 64, 'a');
  result.timing = {0.1, 0.2, 0.3, 4};
  result.last_step.assign(size == fields::large ? 5'000 : 2,
                          {1, 2, 3, action_kind::weight_gradient, -5, 1ll << 60});
  return result;
}

inline process_inventory example_inventory(fields size) {
  if (size == fields::empty) return {};
  return {3,
          8,
          std::vector<held_part>(size == fields::large ? 10'000 : 2, {1, {{2}}, 3, part_location::disk}),
          4,
          {7, hosting(std::vector<member_id>(3, {2}))}};
}

inline restore_plan example_plan(fields size) {
  if (size == fields::empty) return {};
  return {12, false,
          std::vector<restore_source>(size == fields::large ? 4'000 : 2,
                                      {{{5}}, -1, part_location::peer_memory})};
}

inline manifest_part example_part_entry(fields size) {
  if (size == fields::empty) return {};
  tensor_contents half{"0.weight", dtype::bf16, {4, 2}, {{{0, 0}, {2, 2}}}, 1, 4, 1};
  return {{{1, 2, 3}, 4}, "file", ~0ull,
          "sum",          "host", std::vector<tensor_contents>(size == fields::large ? 2'000 : 2, half)};
}

inline process_report example_report(fields size) {
  if (size == fields::empty) return {};
  auto many = size == fields::large ? 2'000u : 2u;
  process_report report;
  report.generation = 9;
  report.rank = 3;
  report.incarnation = 4;
  report.pid = 1ll << 40;
  report.host = "host";
  report.children.assign(many, {1, -2, 1, 3, "out of memory"});
  report.devices.assign(many, {7, {1, call_kind::train, device_activity::computing, 5, 6}, 0.5});
  report.bad_frames = ~0ull;
  return report;
}

/// One of every message that crosses processes.
inline auto example_messages(fields size) {
  bool empty = size == fields::empty;
  auto text = [&](char letter) {
    return std::string(empty ? 0 : size == fields::large ? 70'000 : 5, letter);
  };
  call_request request = empty ? call_request{} : call_request{1, call_kind::evaluate, 2, 3, 4, -5};
  std::vector<call_result> completed(empty ? 0 : 3, example_result(size));
  std::vector<std::uint32_t> indices(empty ? 0 : 3, 9);
  return std::tuple{
      request_done{},
      request_failed{3, true, text('t')},
      get_cached{3, 1, 5},
      cached_sent{indices},
      restore_command{2, example_plan(size), 1.5, hosting(std::vector<member_id>(empty ? 0 : 3, {2}))},
      call_finished{3, example_result(size)},
      want_results{5},
      inspect_process{9},
      end_actor{4, text('o'), 1, 5, -2, 3, 1},
      end_process{4, text('o'), 1, 1},
      set_log_level{4, text('l')},
      command_carried_out{3},
      example_report(size),
      known_results{completed},
      copies_held{4, example_inventory(size)},
      call_entered{4, 2, request, 3, 17},
      process_restored{5, -1, {{0, {0.5, 3, 2}}}},
      snapshot_failed{4, 9},
      write_copies{4, 8},
      replicate_copies{4},
      copies_committed{4, 7},
      replicas_lost{4, 1},
      replicas_wanted{4, 2},
      writes_lost{4, 3},
      step_done{6, 1, 2, 3, {0.25, 4, 5}, -1, 2, 3, 4, 5, example_result(size).last_step, text('n')},
      part_held{7, 2, {1, {{2}}, 3, part_location::peer_memory}},
      part_written{8, 1, example_part_entry(size), text('p')},
      process_progress{9, 1,
                       std::vector<device_progress>(
                           empty ? 0 : 3, {1, {2, call_kind::train, device_activity::applying, 3, 4}, 5.5}),
                       1, 6.5},
      pause_changed{
          9, {4, 17, 1, 1, -5, 2, call_kind::predict, std::vector<plan_position>(empty ? 0 : 3, {5, 6})}},
      pause_requested{9, 1, 4, {17, pause_command::step, step_unit::action, 3}},
      cut_reached{9, 1, 2, {3, 4}, {0.5, 6, 7}},
      step_credit{10, request, 1, 2, std::vector<due_copy>(empty ? 0 : 3, {5, 1}), 6, 7}};
}

}  // namespace troupe::testing
