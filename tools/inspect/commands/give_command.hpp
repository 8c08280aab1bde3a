#pragma once
#include "inspect/commands/job_command.hpp"
#include "inspect/inspector_address.hpp"

namespace troupe {

enum class outcome_form : std::uint8_t { text, json };

/// Asks the user on this terminal whether to do what the command does. Throws bad_input if there is no
/// terminal to ask on.
bool is_confirmed(const job_command& command);

/// Sends a command, waits for its outcome and prints it. Returns the exit code: 0 it is done, 1 it is not, 2
/// the job could not be asked what came of it. Throws http_failure or inspector_refusal if nobody answers
/// before the command is sent.
int give_command(const inspector_address& address, const job_command& command, outcome_form form);

}  // namespace troupe
