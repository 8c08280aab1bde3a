#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::actors::inspector {

/// What became of a command that was taken.
///
///   done       it was carried out
///   refused    it was not carried out, and nothing was changed
///   failed     it was tried, and did not succeed
///   timed_out  it was passed on, and nobody has said in time that it was carried out
///   lost       the process or actor that had it was lost; it was carried out or not
enum class command_result : std::uint8_t { done, refused, failed, timed_out, lost };

std::string_view to_string(command_result result);

struct command_outcome {
  command_result result = command_result::done;
  std::string text;                   ///< what happened, or why not and what to do
  std::optional<std::uint64_t> step;  ///< optimizer steps that a snapshot has
  bool operator==(const command_outcome&) const = default;
};

/// A command as a row of /api/v1/commands and as the data of the event `control` show it.
struct command_row {
  std::string id, action;
  std::string target;                      ///< in words; empty: not known
  int rank = -1;                           ///< of the target; -1: the job, or not known
  std::optional<command_outcome> outcome;  ///< none: it is open
  std::int64_t at_ms = 0;                  ///< Unix time of the outcome
};

nlohmann::ordered_json command_json(const command_row& one);

}  // namespace troupe::actors::inspector
