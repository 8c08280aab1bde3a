#include "troupe/ops/cpu/convolution/window_panels.hpp"

#include <algorithm>
#include <array>

namespace troupe::cpu {
namespace {

using runs_of_panel = std::array<lane_run, static_cast<std::size_t>(panel_gap)>;

/// Windows that follow each other in a row of the image. Returns the number of runs.
std::size_t find_runs(const window_matrix& from, std::int64_t first_window, std::int64_t num_windows,
                      runs_of_panel& runs) {
  std::size_t count = 0;
  for (std::int64_t lane = 0; lane < num_windows;) {
    auto window = first_window + lane;
    runs[count++] = {lane, from.offset_of(window)};
    lane += from.windows.w - window % from.windows.w;
  }
  return count;
}

}  // namespace

void pack_windows(const window_matrix& from, std::int64_t first_window, std::int64_t num_windows,
                  std::int64_t first_tap, std::int64_t inner, const product_loops& loops, float* to) {
  runs_of_panel runs;
  auto count = find_runs(from, first_window, num_windows, runs);
  loops.pack_gathered({from.planes, from.taps + first_tap, inner, std::span(runs).first(count)}, to);
}

}  // namespace troupe::cpu
