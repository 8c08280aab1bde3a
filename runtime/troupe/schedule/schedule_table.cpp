#include "troupe/schedule/schedule_table.hpp"

#include <algorithm>
#include <array>

#include "troupe/error/errors.hpp"

namespace troupe::schedule {
namespace {

using enum schedule_kind;

constexpr auto table = std::to_array<schedule_row>({
    {.kind = gpipe, .name = "gpipe", .title = "GPipe", .stage_order = gpipe_order},
    {.kind = one_f_one_b, .name = "1f1b", .title = "1F1B", .stage_order = one_f_one_b_order},
    {.kind = forward_only,
     .name = "forward_only",
     .title = "Forward only",
     .stage_order = forward_only_order},
    {.kind = interleaved_1f1b,
     .name = "interleaved_1f1b",
     .title = "Interleaved 1F1B",
     .chunked = &interleaved_1f1b_schedule},
    {.kind = zb_h1, .name = "zb_h1", .title = "ZB-H1", .stage_order = zb_h1_order},
    {.kind = zb_h2, .name = "zb_h2", .title = "ZB-H2", .stage_order = zb_h2_order},
    {.kind = zb_v, .name = "zb_v", .title = "ZB-V", .chunked = &zb_v_schedule},
    {.kind = dualpipe_v, .name = "dualpipe_v", .title = "DualPipeV", .chunked = &dualpipe_v_schedule},
    {.kind = pipedream_2bw,
     .name = "pipedream_2bw",
     .title = "PipeDream-2BW",
     .steps_order = pipedream_2bw_order},
    {.kind = looped_bfs, .name = "looped_bfs", .title = "Looped BFS", .chunked = &looped_bfs_schedule},
});

/// Null for a kind whose stages may lie anywhere.
const chunked_schedule* chunked_of(schedule_kind kind) {
  return kind == custom ? nullptr : schedule_of(kind).chunked;
}

}  // namespace

std::span<const schedule_row> schedule_table() { return table; }

const schedule_row& schedule_of(schedule_kind kind) {
  auto found = std::ranges::find(table, kind, &schedule_row::kind);
  if (found == table.end())
    throw_invalid("schedule_of", "a schedule that has a generator", std::to_string(static_cast<int>(kind)));
  return *found;
}

}  // namespace troupe::schedule

namespace troupe {

int usual_chunks(schedule_kind kind) {
  const auto* chunked = schedule::chunked_of(kind);
  return chunked ? chunked->default_chunks : 1;
}

int devices_for(schedule_kind kind, int num_stages, int most_devices) {
  const auto* chunked = schedule::chunked_of(kind);
  int chunks = chunked && chunked->num_chunks != 0 ? chunked->num_chunks : 1;
  return std::min((num_stages + chunks - 1) / chunks, most_devices);
}

}  // namespace troupe
