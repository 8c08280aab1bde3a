#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "inspect/screen/draw.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

struct actor_row {
  const json* actor = nullptr;
  bool is_child = false;
};

/// What a device does, by its number: "waiting_for_tensor 2F0 for 1.2 s on cuda:0".
std::map<int, std::string> work_of_devices(const job_snapshot& job) {
  std::map<int, std::string> work;
  for (const auto& device : job.rows("devices")) {
    auto text = text_in(device, "activity", "?");
    if (auto action = text_in(device, "action"); !action.empty()) text += " " + action;
    if (auto seconds = number_in(device, "at_position_s"); seconds >= 1) text += " for " + time_text(seconds);
    if (auto place = text_in(device, "place", "cpu"); place != "cpu") text += " on " + place;
    work[static_cast<int>(number_in(device, "device"))] = text;
  }
  return work;
}

bool is_culprit(const job_snapshot& job, const std::string& id) {
  return std::ranges::any_of(job.rows("findings"),
                             [&](const json& one) { return text_in(one, "actor") == id; });
}

double order_of(const json& actor, actor_order order) {
  switch (order) {
    case actor_order::tree:
      break;
    case actor_order::state:  // those that have ended come first
      return text_in(actor, "state") == "running" ? 0 : 1;
    case actor_order::restarts:
      return number_in(actor, "restarts");
    case actor_order::mailbox:
      return number_in(actor, "mailbox_depth", -1);
  }
  return 0;
}

std::vector<actor_row> ordered_actors(const job_snapshot& job, actor_order order) {
  std::vector<actor_row> rows;
  for (const auto& actor : job.rows("actors"))
    rows.push_back({&actor, order == actor_order::tree && !text_in(actor, "parent").empty()});
  if (order != actor_order::tree)
    std::ranges::stable_sort(rows, std::ranges::greater(),
                             [&](const actor_row& one) { return order_of(*one.actor, order); });
  return rows;
}

std::vector<std::string> details_of(const json& actor) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : actor.items())
    if (!value.is_null())
      lines.push_back(left(name, 20) + " " +
                      (value.is_string() ? value.get<std::string>()
                                         : value.dump(-1, ' ', false, json::error_handler_t::replace)));
  return lines;
}

}  // namespace

drawn_list draw_actors(const job_snapshot& job, const view_state& shown, std::size_t columns) {
  drawn_list drawn;
  auto line = [&](const std::string& name, const std::string& state, const std::string& restarts,
                  const std::string& mailbox, const std::string& work) {
    return fitted(left(name, 26) + " " + left(state, 8) + " " + right(restarts, 8) + " " + right(mailbox, 7) +
                      "  " + work,
                  columns);
  };
  drawn.headings = {{line("actor", "state", "restarts", "mailbox", "does"), row_style::heading}};
  auto work = work_of_devices(job);
  for (const auto& row : ordered_actors(job, shown.order)) {
    const auto& actor = *row.actor;
    auto id = text_in(actor, "id", "?"), state = text_in(actor, "state", "?"), role = text_in(actor, "role");
    auto does =
        text_in(actor, "reason").empty() ? text_in(actor, "does") : "failed: " + text_in(actor, "reason");
    bool is_running = state == "running";
    if (is_running && role == "device")
      does = work[static_cast<int>(number_in(actor, "number"))] + (does.empty() ? "" : "; " + does);
    if (auto oldest = number_in(actor, "oldest_message_s"); is_running && oldest >= 1)
      does += (does.empty() ? "" : "; ") + std::string("oldest message waits for ") + time_text(oldest);
    auto mailbox = has_number(actor, "mailbox_depth") ? count_text(number_in(actor, "mailbox_depth")) : "-";
    bool is_bad = is_culprit(job, id);
    auto style = is_bad ? row_style::bad : is_running ? row_style::plain : row_style::faint;
    auto name = (row.is_child ? "  " : "") + id;
    drawn.rows.push_back(
        {line(name, is_bad ? "AT FAULT" : state, count_text(number_in(actor, "restarts")), mailbox, does),
         style});
    drawn.details.push_back(details_of(actor));
    drawn.actors.push_back(text_in(actor, "id"));
  }
  return drawn;
}

}  // namespace troupe
