#include "troupe/inspector/commands/command_outcome.hpp"

#include <nlohmann/json.hpp>

namespace troupe {

std::string_view to_string(command_result result) {
  switch (result) {
    case command_result::done:
      return "done";
    case command_result::refused:
      return "refused";
    case command_result::failed:
      return "failed";
    case command_result::timed_out:
      return "timed_out";
    case command_result::lost:
      return "lost";
  }
  return "unknown";
}

nlohmann::ordered_json command_json(const ended_command& one) {
  using json = nlohmann::ordered_json;
  json data = {{"id", one.id},
               {"action", one.action},
               {"target", one.target.empty() ? json() : json(one.target)},
               {"rank", one.rank < 0 ? json() : json(one.rank)},
               {"outcome", to_string(one.outcome.result)},
               {"text", one.outcome.text}};
  if (one.outcome.step) data["step"] = *one.outcome.step;
  data["at_ms"] = one.at_ms;
  return data;
}

}  // namespace troupe
