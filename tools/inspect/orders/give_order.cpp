#include "inspect/orders/give_order.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string>
#include <thread>

#include "inspect/job_snapshot.hpp"
#include "inspect/orders/order_client.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds poll_interval{100};

/// The row of an order that has none in the inspector.
json row_without(const job_order& order, const std::string& id, const char* outcome,
                 const std::string& text) {
  return {{"id", id.empty() ? json() : json(id)},
          {"action", order.action},
          {"target", nullptr},
          {"rank", nullptr},
          {"outcome", outcome},
          {"text", text},
          {"at_ms", nullptr}};
}

int print_outcome(const job_order& order, const json& row, outcome_form form) {
  auto text = form == outcome_form::json ? row.dump(-1, ' ', false, json::error_handler_t::replace)
                                         : printable(outcome_line(order, row).text);
  std::printf("%s\n", text.c_str());
  return outcome_of(row) == "done" ? 0 : 1;
}

int say_unknown(const job_order& order, const std::string& what) {
  std::fprintf(stderr, "troupe: %s: %s\n", printable(order.name()).c_str(), printable(what).c_str());
  return 2;
}

/// Asks until the order has an outcome. An inspector may be gone for a while: the process that replaces
/// rank 0 serves again.
int wait_for_outcome(order_client& client, const order_answer& taken, outcome_form form) {
  auto known_at = clock::now();
  while (true) {
    std::string silence;
    std::optional<json> row;
    try {
      auto rows = client.orders();
      if (const auto* found = order_row(rows, taken.id)) row = *found;
    } catch (const http_failure& problem) {
      silence = problem.what();
    }
    if (row && !outcome_of(*row).empty()) return print_outcome(taken.order, *row, form);
    if (row) known_at = clock::now();
    bool is_over = clock::now() - known_at >= std::chrono::milliseconds(most_unknown_ms);
    if (is_over && silence.empty())
      return print_outcome(taken.order, row_without(taken.order, taken.id, "lost", unknown_order_text), form);
    if (is_over)
      return say_unknown(
          taken.order, "it was taken as " + taken.id + ", and then nobody answered for 10 s (" + silence +
                           "): the job has ended, or rank 0 was replaced and serves at another address. The "
                           "audit log tells what became of it");
    std::this_thread::sleep_for(poll_interval);
  }
}

}  // namespace

bool is_confirmed(const job_order& order) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0)
    throw bad_input("troupe inspect --order " + order.action +
                    ": expected --yes, since there is no terminal to ask on whether to " + order.deed());
  std::fprintf(stderr, "%s? y: yes, anything else: no  ", printable(order.deed()).c_str());
  std::string line;
  std::getline(std::cin, line);
  if (line == "y" || line == "yes") return true;
  std::fprintf(stderr, "troupe: %s: not sent\n", printable(order.name()).c_str());
  return false;
}

int give_order(const inspector_address& at, const job_order& order, outcome_form form) {
  order_client client(at);
  client.orders();  // to say before anything is sent that nobody answers
  auto answer = client.send(order);
  if (!answer.id.empty()) return wait_for_outcome(client, answer, form);
  if (answer.status == 0)
    return say_unknown(order, answer.problem + ". It was taken or not: look at the job, or at the audit log");
  auto row = row_without(order, {}, "refused", answer.problem);
  row["status"] = answer.status;
  return print_outcome(order, row, form);
}

}  // namespace troupe
