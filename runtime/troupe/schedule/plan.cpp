#include "troupe/schedule/plan.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/schedule_table.hpp"
#include "troupe/usage/nearest.hpp"

namespace troupe {
namespace {

constexpr std::string_view kind_letters = "FBIWRAG";

/// Cuts the number at the front of `rest` off; false if there is none.
bool take_number(std::string_view& rest, int& number) {
  auto [end, status] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (status != std::errc() || number < 0) return false;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  return true;
}

/// "zb_h1" of "ZB-H1", as papers and drawings write it.
std::string in_small_letters(std::string_view name) {
  std::string text(name);
  for (auto& letter : text)
    letter = letter == '-' || letter == ' '
                 ? '_'
                 : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace

schedule_kind schedule_kind_from(std::string_view name) {
  if (name == "one_f_one_b") return schedule_kind::one_f_one_b;
  std::string list;
  std::vector<std::string> known;
  for (const auto& row : schedule::schedule_table()) {
    if (row.name == name) return row.kind;
    known.emplace_back(row.name);
    list += (list.empty() ? "" : ", ") + known.back();
  }
  auto meant = usage::nearest_to(in_small_letters(name), known);
  throw bad_input("unknown schedule '" + std::string(name) + "'" +
                  (meant.empty() ? "" : "; did you mean '" + meant + "'?") + (meant.empty() ? ". " : " ") +
                  "Choose one of " + list);
}

std::string_view to_string(schedule_kind kind) {
  return kind == schedule_kind::custom ? "custom" : schedule::schedule_of(kind).name;
}

std::string to_string(const action& op) {
  auto text = std::to_string(op.stage) + kind_letters[static_cast<std::size_t>(op.kind)];
  bool has_number = is_of_microbatch(op) || op.kind == action_kind::reduce_gradient || op.microbatch != 0;
  return has_number ? text + std::to_string(op.microbatch) : text;
}

action action_from(std::string_view text) {
  action read;
  auto rest = text;
  auto letter = std::string_view::npos;
  bool whole = take_number(rest, read.stage) && !rest.empty();
  if (whole) {
    letter = kind_letters.find(rest.front());
    rest.remove_prefix(1);
    bool is_of_step = letter == static_cast<std::size_t>(action_kind::apply) ||
                      letter == static_cast<std::size_t>(action_kind::all_reduce);
    bool is_of_first_step = is_of_step && rest.empty();
    whole =
        letter != std::string_view::npos &&
        (is_of_first_step || (take_number(rest, read.microbatch) && !(is_of_step && read.microbatch == 0))) &&
        rest.empty();
  }
  if (!whole)
    throw bad_input("'" + std::string(text) +
                    "' is no action. Write stage, kind (F, B, I, W, R, A or G) and microbatch, for example "
                    "2F0; an A or G has none, or the number of a later optimizer step: 2A, 2A1");
  read.kind = static_cast<action_kind>(letter);
  return read;
}

bool plan::is_synchronized(const action& op) const {
  bool is_pass = op.kind == action_kind::forward || op.kind == action_kind::backward ||
                 op.kind == action_kind::input_gradient;
  return is_pass && num_running_replicas() > 1 && std::ranges::binary_search(synchronized_stages, op.stage);
}

const std::vector<action>& plan::actions_of(int job_device) const {
  static const std::vector<action> nothing;
  if (replica_of(job_device) >= num_running_replicas()) return nothing;
  return devices[static_cast<std::size_t>(device_of(job_device))];
}

}  // namespace troupe
