#include "troupe/fault/fault_plan.hpp"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <thread>

#include "troupe/error/errors.hpp"

namespace troupe::fault {
namespace {

constexpr std::array<std::string_view, 17> names = {
    "joined",   "load",       "forward",   "backward",          "weight",          "reduce",
    "apply",    "copy_state", "keep_copy", "part_half_written", "before_manifest", "read_part",
    "recovery", "leaving",    "gather",    "all_reduce",        "unshard"};

constexpr std::array<std::string_view, 4> kinds = {"kill", "stop", "fail", "hang"};

[[noreturn]] void refuse(std::string_view text, const std::string& problem) {
  std::string known;
  for (auto name : names) known += (known.empty() ? "" : ", ") + std::string(name);
  throw bad_input(
      "fault '" + std::string(text) + "': " + problem +
      ". Expected POINT[:kill|stop|fail|hang]@rank=R[,step=S][,incarnation=I] with POINT one of " + known);
}

fault_point point_from(std::string_view name, std::string_view text) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<fault_point>(i);
  refuse(text, "unknown point '" + std::string(name) + "'");
}

fault_kind kind_from(std::string_view name, std::string_view text) {
  if (name.empty()) return fault_kind::kill;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (kinds[i] == name) return static_cast<fault_kind>(i);
  refuse(text, "'" + std::string(name) + "' is none of kill, stop, fail and hang");
}

std::uint64_t number_from(std::string_view digits, std::string_view text) {
  std::uint64_t value = 0;
  auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (status != std::errc() || end != digits.data() + digits.size())
    refuse(text, "'" + std::string(digits) + "' is no number");
  return value;
}

/// Cuts the part before `separator` off `rest`.
std::string_view next(std::string_view& rest, char separator) {
  auto end = rest.find(separator);
  auto head = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return head;
}

void inject(fault_kind kind, fault_point point) {
  if (kind == fault_kind::fail)
    throw std::runtime_error("injected fault at '" + std::string(to_string(point)) + "'");
  while (kind == fault_kind::hang) std::this_thread::sleep_for(std::chrono::hours(1));
  ::kill(::getpid(), kind == fault_kind::stop ? SIGSTOP : SIGKILL);
}

}  // namespace

std::string_view to_string(fault_point point) { return names[static_cast<std::size_t>(point)]; }

std::string to_string(const planned_fault& fault) {
  auto text = std::string(to_string(fault.point)) + ":" +
              std::string(kinds[static_cast<std::size_t>(fault.kind)]) +
              "@rank=" + std::to_string(fault.rank);
  if (fault.step) text += ",step=" + std::to_string(*fault.step);
  if (fault.incarnation > 0) text += ",incarnation=" + std::to_string(fault.incarnation);
  return text;
}

std::vector<planned_fault> faults_from(std::string_view text) {
  std::vector<planned_fault> faults;
  for (auto rest = text; !rest.empty();) {
    auto settings = next(rest, ';');
    auto what = next(settings, '@');
    auto& made = faults.emplace_back();
    made.point = point_from(next(what, ':'), text);
    made.kind = kind_from(what, text);
    bool has_rank = false;
    while (!settings.empty()) {
      auto value = next(settings, ',');
      auto key = next(value, '=');
      auto number = [&] { return number_from(value, text); };
      if (key == "rank") {
        made.rank = number();
        has_rank = true;
      } else if (key == "step") {
        made.step = number();
      } else if (key == "incarnation") {
        made.incarnation = number();
      } else {
        refuse(text, "unknown setting '" + std::string(key) + "'");
      }
    }
    if (!has_rank) refuse(text, "no rank given");
  }
  return faults;
}

fault_plan::fault_plan(std::string_view text, int rank, std::uint32_t incarnation) {
  for (const auto& planned : faults_from(text))
    if (planned.rank == static_cast<std::uint64_t>(rank) && planned.incarnation == incarnation)
      mine_.push_back({planned});
}

void fault_plan::at(fault_point point, std::optional<std::uint64_t> step) const {
  for (const auto& [planned, fired] : mine_)
    if (planned.point == point && (!planned.step || planned.step == step) && !fired->exchange(true))
      inject(planned.kind, point);
}

std::vector<planned_fault> fault_plan::not_fired() const {
  std::vector<planned_fault> left;
  for (const auto& [planned, fired] : mine_)
    if (!*fired) left.push_back(planned);
  return left;
}

}  // namespace troupe::fault
