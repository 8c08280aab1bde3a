#include "troupe/inspector/commands/control_command.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

namespace troupe::actors::inspector {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array action_names = {"pause", "resume", "step", "snapshot", "log_level", "restart", "kill"};
constexpr std::size_t longest_quote = 60;

std::string listed(std::initializer_list<const char*> words) {
  std::string list;
  for (const char* word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

/// What came, short enough for a message. Bytes that are no UTF-8 are replaced.
std::string shown_value(const json& value) {
  auto text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  return text.size() <= longest_quote ? text : text.substr(0, longest_quote) + "...";
}

/// Ends the reading of a body.
struct refused {
  std::string why;
};

/// The object in `body`. A key that comes twice is refused: which of its values is meant is not known.
json object_from(std::string_view body) {
  std::set<std::string> keys;
  std::string twice;
  auto note_keys = [&](int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 && !keys.insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  auto read = json::parse(body.begin(), body.end(), note_keys, /*allow_exceptions=*/false);
  if (read.is_discarded()) throw refused{"expected a body that is a JSON object, got none that can be read"};
  if (!read.is_object()) throw refused{"expected a body that is a JSON object, got " + shown_value(read)};
  if (!twice.empty()) throw refused{"expected each key once, got " + shown_value(twice) + " twice"};
  return read;
}

void check_keys(const json& object, std::initializer_list<const char*> expected) {
  auto wanted = expected.size() == 0 ? std::string("an empty object {}") : "the keys " + listed(expected);
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(expected, key) == expected.end())
      throw refused{"expected " + wanted + ", got the key " + shown_value(key)};
  for (const char* key : expected)
    if (!object.contains(key)) throw refused{"expected " + wanted + ", but '" + key + "' is missing"};
}

std::string word_of(const json& object, const char* key, std::initializer_list<const char*> known) {
  const auto& value = object[key];
  if (value.is_string() && std::ranges::find(known, value.get<std::string>()) != known.end()) return value;
  throw refused{"expected one of " + listed(known) + " as '" + key + "', got " + shown_value(value)};
}

std::uint64_t number_of(const json& object, const char* key, std::uint64_t least, std::uint64_t most) {
  const auto& value = object[key];
  if (value.is_number_unsigned())
    if (auto number = value.get<std::uint64_t>(); number >= least && number <= most) return number;
  throw refused{"expected a whole number from " + std::to_string(least) + " to " + std::to_string(most) +
                " as '" + key + "', got " + shown_value(value)};
}

void read_step(const json& object, control_command& command) {
  check_keys(object, {"unit", "count"});
  command.unit = step_unit_from(word_of(object, "unit", {"action", "microbatch", "step"}));
  command.count =
      number_of(object, "count", 1, command.unit == step_unit::step ? most_steps : most_small_steps);
}

void read_target(const json& object, control_command& command) {
  constexpr std::size_t longest_id = 200;
  if (object.size() != 1 || (!object.contains("actor") && !object.contains("rank")))
    throw refused{R"(expected either {"actor": an id of /api/v1/actors} or {"rank": a number}, got )" +
                  shown_value(object)};
  if (object.contains("rank")) {
    command.rank = static_cast<int>(number_of(object, "rank", 0, std::numeric_limits<int>::max()));
    return;
  }
  const auto& actor = object["actor"];
  if (!actor.is_string() || actor.get<std::string>().empty() || actor.get<std::string>().size() > longest_id)
    throw refused{"expected an id of /api/v1/actors as 'actor', got " + shown_value(actor)};
  command.actor = actor;
}

control_command read_command(control_action action, std::string_view body) {
  auto object = object_from(body);
  control_command command;
  command.action = action;
  switch (action) {
    case control_action::pause:
    case control_action::resume:
    case control_action::snapshot:
      check_keys(object, {});
      break;
    case control_action::step:
      read_step(object, command);
      break;
    case control_action::log_level:
      check_keys(object, {"level"});
      command.level = word_of(object, "level", {"trace", "debug", "info", "warn", "error"});
      break;
    case control_action::restart:
    case control_action::kill:
      read_target(object, command);
      break;
  }
  return command;
}

}  // namespace

std::string_view to_string(control_action action) {
  return action_names.at(static_cast<std::size_t>(action));
}

std::variant<control_command, control_refusal> control_command_from(std::string_view name,
                                                                    std::string_view body) {
  auto found = std::ranges::find(action_names, name);
  if (found == action_names.end())
    return control_refusal{404,
                           "expected one of pause, resume, step, snapshot, log_level, restart, kill behind "
                           "/api/v1/control/, got " +
                               shown_value(std::string(name))};
  try {
    return read_command(static_cast<control_action>(found - action_names.begin()), body);
  } catch (const refused& problem) {
    return control_refusal{400, std::string(name) + ": " + problem.why};
  }
}

bool is_disruptive(control_action action) {
  return action == control_action::restart || action == control_action::kill;
}

}  // namespace troupe::actors::inspector
