#pragma once
#include <string>
#include <vector>

#include "inspect/job_snapshot.hpp"
#include "inspect/screen/screen.hpp"
#include "inspect/view_state.hpp"

namespace troupe {

/// The rows of one view, without those around it.
struct drawn_list {
  screen headings;
  screen rows;
  /// All that is known of each row, one line each; empty where a row has no more.
  std::vector<std::vector<std::string>> details;
  /// The actor of each row; empty in the other views.
  std::vector<std::string> actors;
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
/// The actor of the row that is selected; empty: none is.
std::string selected_actor(const drawn_list& drawn, const view_state& shown);
/// A whole terminal: `size.rows` rows. `notes`: what to tell about the connection, of commands, or of what is
/// replayed, each in as many rows as it takes, up to half of the terminal; empty: nothing.
screen draw_screen(const job_snapshot& job, const view_state& shown, const screen& notes, screen_size size);
/// All views one below the other, for `--once`.
screen draw_all(const job_snapshot& job, std::size_t columns);

}  // namespace troupe
