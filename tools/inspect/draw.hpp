#pragma once
#include <string>
#include <vector>

#include "inspect/job_snapshot.hpp"
#include "inspect/screen.hpp"
#include "inspect/view_state.hpp"

namespace troupe {

/// The rows of one view, without those around it.
struct drawn_list {
  screen headings;
  screen rows;
  /// All that is known of each row, one line each; empty where a row has no more.
  std::vector<std::vector<std::string>> details;
};

// Pure functions of what is known; `columns` wide at most.
drawn_list draw_actors(const job_snapshot& job, const view_state& shown, std::size_t columns);
drawn_list draw_timeline(const job_snapshot& job, std::size_t columns);
drawn_list draw_rates(const job_snapshot& job, std::size_t columns);
drawn_list draw_findings(const job_snapshot& job, std::size_t columns);
drawn_list draw_log(const job_snapshot& job, std::size_t columns);
/// The list of the view, filtered.
drawn_list draw_list(const job_snapshot& job, const view_state& shown, std::size_t columns);

/// Two rows about the job as a whole.
screen draw_job(const job_snapshot& job, std::size_t columns);
/// A whole terminal: `size.rows` rows. `note`: what to tell about the connection, or of what is replayed;
/// empty: nothing.
screen draw_screen(const job_snapshot& job, const view_state& shown, const std::string& note,
                   screen_size size);
/// All views one below the other, for `--once`.
screen draw_all(const job_snapshot& job, std::size_t columns);

}  // namespace troupe
