#include "inspect/orders/job_order.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "inspect/job_snapshot.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array actions = {"pause", "resume", "step", "snapshot", "log_level", "restart", "kill"};

[[noreturn]] void refuse_order(const std::string& what) {
  throw bad_input("troupe inspect --order: " + what);
}

std::string listed(std::initializer_list<std::string_view> words) {
  std::string list;
  for (auto word : words) list += (list.empty() ? "" : ", ") + std::string(word);
  return list;
}

/// An option that another order has would be ignored.
void check_options(const order_words& words) {
  auto refuse_with = [&](bool is_given, const char* option, std::initializer_list<std::string_view> orders) {
    if (is_given && std::ranges::find(orders, words.action) == orders.end())
      refuse_order(std::string("expected ") + option + " with " + listed(orders) + " only, got it with " +
                   words.action + ": leave it out");
  };
  refuse_with(!words.unit.empty(), "--unit", {"step"});
  refuse_with(words.count.has_value(), "--count", {"step"});
  refuse_with(!words.level.empty(), "--level", {"log_level"});
  refuse_with(!words.actor.empty(), "--actor", {"restart", "kill"});
  refuse_with(words.rank.has_value(), "--rank", {"restart", "kill"});
}

json step_from(const order_words& words) {
  constexpr std::int64_t most_steps = 1'000'000'000, most_smaller = 1000;  // what an inspector takes
  auto unit = words.unit.empty() ? "step" : words.unit;
  if (unit != "step" && unit != "microbatch" && unit != "action")
    refuse_order("expected --unit step, microbatch or action with step, got '" + unit + "'");
  auto most = unit == "step" ? most_steps : most_smaller;
  auto count = words.count.value_or(1);
  if (count < 1 || count > most)
    refuse_order("expected --count from 1 to " + std::to_string(most) + " with --unit " + unit + ", got " +
                 std::to_string(count));
  return {{"unit", unit}, {"count", count}};
}

json target_from(const order_words& words) {
  if (words.actor.empty() == !words.rank)
    refuse_order("expected either --actor ID (of /api/v1/actors) or --rank R with " + words.action +
                 ", got " + (words.rank ? "both" : "neither"));
  return words.rank ? json{{"rank", *words.rank}} : json{{"actor", words.actor}};
}

std::string target_text(const json& body) {
  if (auto actor = text_in(body, "actor"); !actor.empty()) return printable(actor);
  return "the process of rank " + std::to_string(static_cast<std::int64_t>(number_in(body, "rank")));
}

std::string step_text(const json& body) {
  auto count = static_cast<std::int64_t>(number_in(body, "count", 1));
  auto unit = text_in(body, "unit", "step");
  auto name = unit == "step" ? "optimizer step" : unit;
  return std::to_string(count) + " " + name + (count == 1 ? "" : name.ends_with("ch") ? "es" : "s");
}

}  // namespace

std::string job_order::name() const {
  if (action == "step") return "step of " + step_text(body);
  if (action == "log_level") return "log level " + text_in(body, "level");
  return is_disruptive() ? action + " " + target_text(body) : action;
}

std::string job_order::deed() const {
  bool is_actor = body.contains("actor");
  if (action == "pause") return "pause the job";
  if (action == "resume") return "let the job go on";
  if (action == "step") return "let the job do " + step_text(body) + " and pause after it";
  if (action == "snapshot") return "write a snapshot";
  if (action == "log_level") return "log from " + text_in(body, "level") + " on in all processes";
  if (action == "kill") return name() + (is_actor ? ", as if it had failed" : " with SIGKILL");
  return name() + (is_actor ? "" : ", which ends in good order");
}

job_order order_from(const order_words& words) {
  if (std::ranges::find(actions, words.action) == actions.end())
    refuse_order("expected one of pause, resume, step, snapshot, log_level, restart, kill, got '" +
                 words.action + "'");
  check_options(words);
  job_order order{words.action};
  if (words.action == "step") order.body = step_from(words);
  if (words.action == "log_level") {
    if (words.level.empty())
      refuse_order("expected --level trace, debug, info, warn or error with log_level");
    order.body = {{"level", words.level}};
  }
  if (order.is_disruptive()) order.body = target_from(words);
  return order;
}

order_answer order_answer_from(const job_order& order, int status, const std::string& body) {
  auto told = json::parse(body, nullptr, false);
  order_answer answer{order, {}, {}, status};
  if (status == 202) answer.id = text_in(told, "id");
  if (answer.id.empty())
    answer.problem = text_in(told, "error", "status " + std::to_string(status) + ": " + body.substr(0, 200));
  return answer;
}

const json* order_row(const json& orders, const std::string& id) {
  for (const auto& row : orders)
    if (text_in(row, "id") == id) return &row;
  return nullptr;
}

std::string outcome_of(const json& row) { return text_in(row, "outcome"); }

screen_row outcome_line(const job_order& order, const json& row) {
  auto outcome = outcome_of(row);
  return {order.name() + ": " + outcome + ": " + text_in(row, "text"),
          outcome == "done" ? row_style::plain : row_style::bad};
}

const char* const unknown_order_text =
    "the inspector does not know the order: rank 0 was replaced, or its Troupe is older. It was carried out "
    "or not: look at the job";

}  // namespace troupe
