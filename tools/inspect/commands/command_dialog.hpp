#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/commands/job_command.hpp"
#include "inspect/job_snapshot.hpp"
#include "inspect/keys.hpp"
#include "inspect/screen/screen.hpp"
#include "inspect/view_state.hpp"

namespace troupe {

/// The commands that a terminal's user gives: a question before each, and then what the inspector answers and
/// what came of it, until the next key. Several commands may be open at a time. A value: functions below
/// change it by keys, answers and snapshots.
struct command_dialog {
  struct followed {
    job_command command;
    std::string id;
    /// Unix time since which snapshots have no row of the command; 0: they have one.
    std::int64_t unknown_since_ms = 0;
  };
  struct line {
    std::string id;  ///< of the command that it is about; empty: it has none
    screen_row row;
  };
  std::optional<job_command> asked;  ///< is sent if the next key says yes
  bool asks_level = false;           ///< the next key chooses a level of the log
  std::vector<followed> open;        ///< taken, and without an outcome
  std::vector<line> lines;           ///< told until the next key
};

/// Whether the key gives a command: p n m w L K R.
bool is_command_key(const key& pressed);

struct command_press {
  bool is_used = false;                  ///< the key is for no view
  std::optional<job_command> send = {};  ///< command that the inspector is to get; none: nothing
};
/// `actor`: id of the one that is selected; empty: none, or another view is shown.
command_press press_key(command_dialog& dialog, const key& pressed, const job_snapshot& job,
                        const std::string& actor);
/// The inspector has answered, or nobody has.
void note_answer(command_dialog& dialog, const command_answer& answer);
/// A snapshot tells outcomes. While a question is asked they are left for later.
void note_outcomes(command_dialog& dialog, const job_snapshot& job);

/// The question, or what is told of commands; empty: nothing.
screen lines_of(const command_dialog& dialog);
/// Which keys give commands, in 80 columns; empty: the job takes none.
screen command_keys_line(const job_snapshot& job, const view_state& shown);

}  // namespace troupe
