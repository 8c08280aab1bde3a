#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "troupe/schedule/cut.hpp"

namespace troupe::actors::inspector {

/// What someone who watches a job may ask of it.
enum class control_action : std::uint8_t { pause, resume, step, snapshot, log_level, restart, kill };

/// "log_level"
std::string_view to_string(control_action action);

/// A command as it came over HTTP.
struct control_command {
  control_action action = control_action::pause;
  step_unit unit = step_unit::step;  ///< control_action::step only: what `count` counts
  std::uint64_t count = 1;           ///< control_action::step only: how far to go
  std::string level;                 ///< of log_level: a name that spdlog knows
  // Of restart and kill, either of them:
  std::optional<int> rank;  ///< a whole process
  std::string actor;        ///< an id of /api/v1/actors; empty: the process
  bool operator==(const control_command&) const = default;
};

/// Why a command is not taken, with the status of HTTP that says so.
struct control_refusal {
  int status = 400;
  std::string why;  ///< what was expected, what came, what to do
  bool operator==(const control_refusal&) const = default;
};

/// Of whole steps as many as wanted; of smaller units so many, since the scheduler works out each.
constexpr std::uint64_t most_small_steps = 1000;
constexpr std::uint64_t most_steps = 1'000'000'000;

/// Reads the command `name` with this body, a JSON object:
///
///   pause, resume, snapshot   {}
///   step                      {"unit": "action" | "microbatch" | "step", "count": 1}
///   log_level                 {"level": "trace" | "debug" | "info" | "warn" | "error"}
///   restart, kill             {"actor": ID} or {"rank": R}
///
/// Every key must be there, once, and no other. Knows no job: whether an actor or rank exists is not checked.
std::variant<control_command, control_refusal> control_command_from(std::string_view name,
                                                                    std::string_view body);

/// Whether the command ends or replaces actors or processes.
bool is_disruptive(control_action action);

}  // namespace troupe::actors::inspector
