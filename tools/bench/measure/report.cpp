#include "bench/measure/report.hpp"

#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>
#include <utility>

namespace troupe::bench {
namespace {

using result_object = nlohmann::ordered_json;

std::string processor_model() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown processor";
}

int usable_cores() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (::sched_getaffinity(0, sizeof mine, &mine) == 0) return CPU_COUNT(&mine);
  return static_cast<int>(std::thread::hardware_concurrency());
}

/// With four significant digits, or all digits before the point.
std::string number_text(double value) {
  char text[64];
  std::snprintf(text, sizeof text, std::abs(value) < 1000 ? "%.4g" : "%.0f", value);
  return text;
}

std::string value_text(const result_object& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_integer()) return value.dump();
  if (value.is_number()) return number_text(value);
  if (value.is_object() && value.contains("median"))
    return number_text(value["median"]) + " [" + number_text(value["min"]) + ".." +
           number_text(value["max"]) + "]";
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const auto& each : value) text += (text.empty() ? "" : ",") + value_text(each);
  return text;
}

std::string field_text(const result_object& result, const std::string& name) {
  return value_text(result.value(name, result_object(nullptr)));
}

/// Room for what may follow in the column of `value`.
int width_of(const result_object& value) {
  constexpr int of_spread = 30, of_number = 7;
  if (value.is_object()) return of_spread;
  return std::max(value.is_number() ? of_number : 0, static_cast<int>(value_text(value).size()));
}

bool same_fields(const columns& a, const columns& b) {
  return std::ranges::equal(a, b, {}, &column::field, &column::field);
}

}  // namespace

machine this_machine() {
  machine where{processor_model(), usable_cores(), 0};
  if (::getloadavg(&where.load, 1) != 1) where.load = -1;
  return where;
}

report::report(std::string bench, bool json) : bench_(std::move(bench)), json_(json), where_(this_machine()) {
  note("machine", std::to_string(where_.cores) + (where_.cores == 1 ? " core (" : " cores (") +
                      where_.processor + "), load " + number_text(where_.load) + " before");
}

void report::note(const std::string& name, const std::string& text) {
  if (json_) return;
  auto line = name + std::string(name.size() < 10 ? 11 - name.size() : 1, ' ') + text + '\n';
  if (has_result_)
    std::printf("%s", line.c_str());
  else
    notes_ += line;
}

void report::note_crowding(int num_ranks) {
  if (where_.cores < num_ranks) note("ranks", "MORE RANKS THAN CORES: they wait for each other's turn");
}

void report::add(const columns& shown, const result_object& result) {
  if (json_)
    print_object(result);
  else
    add_detail(shown, result);
}

void report::add_block(const result_object& result) {
  if (json_) return print_object(result);
  print_notes();
  std::size_t width = 0;
  for (const auto& [name, value] : result.items()) width = std::max(width, name.size());
  std::printf("\n");
  for (const auto& [name, value] : result.items())
    std::printf("%-*s  %s\n", static_cast<int>(width), name.c_str(), value_text(value).c_str());
  std::fflush(stdout);
}

void report::add_detail(const columns& shown, const result_object& result) {
  if (json_) return;
  print_notes();
  auto print_line = [this](auto text_of) {
    std::string line;
    for (const auto& each : shown_) {
      auto text = text_of(each.field);
      text.resize(std::max(text.size(), static_cast<std::size_t>(each.width)), ' ');
      line += text + ' ';
    }
    std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  };
  if (!same_fields(shown, shown_)) {
    shown_ = shown;
    for (auto& each : shown_)
      each.width = std::max({each.width, static_cast<int>(each.field.size()),
                             width_of(result.value(each.field, result_object(nullptr)))});
    print_line([](const std::string& field) { return field; });
  }
  print_line([&](const std::string& field) { return field_text(result, field); });
  std::fflush(stdout);
}

void report::print_object(const result_object& result) const {
  result_object line{
      {"bench", bench_},
      {"machine", {{"processor", where_.processor}, {"cores", where_.cores}, {"load_before", where_.load}}}};
  line.update(result);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);  // a bench that is ended has printed what it measured before
}

void report::print_notes() {
  std::printf("%s", std::exchange(notes_, "").c_str());
  has_result_ = true;
}

}  // namespace troupe::bench
