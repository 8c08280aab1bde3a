#include "inspect/commands/command_dialog.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <variant>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view command_letters = "pnmwLKR";
constexpr std::array<std::pair<char, const char*>, 5> levels = {
    {{'t', "trace"}, {'d', "debug"}, {'i', "info"}, {'w', "warn"}, {'e', "error"}}};

bool is_true(const json& object, const char* name) {
  auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

/// A command, or why there is none.
using found_command = std::variant<job_command, std::string>;

found_command command_on_actor(const std::string& action, const job_snapshot& job, const std::string& id) {
  if (id.empty()) return "K and R are for the actor that is selected: press 1, and choose one";
  for (const auto& actor : job.rows("actors")) {
    if (text_in(actor, "id") != id) continue;
    if (text_in(actor, "state") == "lost")
      return action + " " + id + ": it was lost with its process: choose the actor that runs in its place";
    if (text_in(actor, "role") != "supervisor") return job_command{action, {{"actor", id}}};
    return job_command{action, {{"rank", static_cast<std::int64_t>(number_in(actor, "rank"))}}};
  }
  return action + " " + id + ": it is no longer among the actors";
}

found_command command_of(char letter, const job_snapshot& job, const std::string& actor) {
  const auto& known = job.part("job");
  if (known.empty()) return "nothing is known of the job yet: it gets no commands";
  if (!is_true(known, "control"))
    return "this job takes no commands: start it with --inspect-control beside --inspect";
  switch (letter) {
    case 'p':
      return job_command{is_true(known, "is_paused") ? "resume" : "pause"};
    case 'n':
      return job_command{"step", {{"unit", "step"}, {"count", 1}}};
    case 'm':
      return job_command{"step", {{"unit", "microbatch"}, {"count", 1}}};
    case 'w':
      return job_command{"snapshot"};
    case 'L':
      return job_command{"log_level"};
    default:
      return command_on_actor(letter == 'K' ? "kill" : "restart", job, actor);
  }
}

void tell(command_dialog& dialog, screen_row row, const std::string& id = {}) {
  auto known = std::ranges::find_if(
      dialog.lines, [&](const command_dialog::line& one) { return !id.empty() && one.id == id; });
  if (known == dialog.lines.end())
    dialog.lines.push_back({id, std::move(row)});
  else
    known->row = std::move(row);
}

command_press send(command_dialog& dialog, job_command command) {
  tell(dialog, {command.name() + ": sent, and not answered yet"});
  return {true, std::move(command)};
}

command_press answer_question(command_dialog& dialog, const key& pressed) {
  auto command = *std::exchange(dialog.asked, std::nullopt);
  bool is_yes = pressed.kind == key_kind::enter || pressed == key{key_kind::text, 'y'};
  if (is_yes) return send(dialog, std::move(command));
  tell(dialog, {command.name() + ": not sent"});
  return {true};
}

command_press choose_level(command_dialog& dialog, const key& pressed) {
  dialog.asks_level = false;
  auto chosen = std::ranges::find_if(levels, [&](const auto& one) {
    return pressed == key{key_kind::text, one.first};
  });
  if (chosen != levels.end()) return send(dialog, {"log_level", {{"level", chosen->second}}});
  tell(dialog, {"log level: not sent"});
  return {true};
}

/// Without a row for long, nobody knows what became of it.
bool is_forgotten(command_dialog::followed& one, const json* row, std::int64_t now_ms) {
  if (row) {
    one.unknown_since_ms = 0;
    return false;
  }
  if (one.unknown_since_ms == 0) one.unknown_since_ms = now_ms;
  return now_ms - one.unknown_since_ms >= most_unknown_ms;
}

}  // namespace

bool is_command_key(const key& pressed) {
  return pressed.kind == key_kind::text && command_letters.find(pressed.letter) != std::string_view::npos;
}

command_press press_key(command_dialog& dialog, const key& pressed, const job_snapshot& job,
                        const std::string& actor) {
  dialog.lines.clear();
  if (dialog.asks_level) return choose_level(dialog, pressed);
  if (dialog.asked) return answer_question(dialog, pressed);
  if (!is_command_key(pressed)) return {};
  auto found = command_of(pressed.letter, job, actor);
  if (auto* problem = std::get_if<std::string>(&found)) {
    tell(dialog, {*problem, row_style::bad});
  } else if (auto& command = std::get<job_command>(found); command.action == "log_level") {
    dialog.asks_level = true;
  } else {
    dialog.asked = std::move(command);
  }
  return {true};
}

void note_answer(command_dialog& dialog, const command_answer& answer) {
  auto name = answer.command.name();
  std::erase_if(dialog.lines, [&](const command_dialog::line& one) {
    return one.row.text == name + ": sent, and not answered yet";
  });
  if (!answer.id.empty()) {
    dialog.open.push_back({answer.command, answer.id});
    return tell(dialog, {name + ": taken as " + answer.id + ", and not carried out yet"}, answer.id);
  }
  if (answer.status != 0) return tell(dialog, {name + ": refused: " + answer.problem, row_style::bad});
  tell(dialog, {name + ": " + answer.problem + ". It was taken or not: look at the job", row_style::bad});
}

void note_outcomes(command_dialog& dialog, const job_snapshot& job) {
  if (dialog.asked || dialog.asks_level) return;
  std::erase_if(dialog.open, [&](command_dialog::followed& one) {
    const auto* row = command_row(job.rows("commands"), one.id);
    if (row && !outcome_of(*row).empty()) {
      tell(dialog, outcome_line(one.command, *row), one.id);
      return true;
    }
    if (!is_forgotten(one, row, job.at_ms)) return false;
    tell(dialog, {one.command.name() + ": lost: " + unknown_command_text, row_style::bad}, one.id);
    return true;
  });
}

screen lines_of(const command_dialog& dialog) {
  if (dialog.asks_level)
    return {{"log level? t trace  d debug  i info  w warn  e error, any other key: no", row_style::heading}};
  if (dialog.asked) return {{dialog.asked->deed() + "? y: yes, any other key: no", row_style::heading}};
  screen rows;
  for (const auto& one : dialog.lines) rows.push_back(one.row);
  return rows;
}

screen command_keys_line(const job_snapshot& job, const view_state& shown) {
  const auto& known = job.part("job");
  if (!is_true(known, "control") || shown.is_filtering) return {};
  std::string text = is_true(known, "is_paused") ? "p: resume" : "p: pause";
  text += "  n: step  m: microbatch  w: snapshot  L: log";
  if (shown.view == inspect_view::actors) text += "  K: kill  R: restart";
  return {{text, row_style::faint}};
}

}  // namespace troupe
