#include "troupe/inspector/commands/command_outcome.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors::inspector {

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

nlohmann::ordered_json command_json(const command_row& one) {
  using json = nlohmann::ordered_json;
  const auto& outcome = one.outcome;
  json data = {{"id", one.id},
               {"action", one.action},
               {"target", one.target.empty() ? json() : json(one.target)},
               {"rank", one.rank < 0 ? json() : json(one.rank)},
               {"outcome", outcome ? json(to_string(outcome->result)) : json()},
               {"text", outcome ? json(outcome->text) : json()}};
  if (outcome && outcome->step) data["step"] = *outcome->step;
  data["at_ms"] = outcome ? json(one.at_ms) : json();
  return data;
}

}  // namespace troupe::actors::inspector
