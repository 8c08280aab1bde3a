#include "bench/measure/report.hpp"

#include <sched.h>
#include <stdlib.h>

#include <algorithm>
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

std::string value_text(const result_object& value, const column& of) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number()) return number_text(of.factor * value.get<double>(), of.digits);
  if (value.is_object())
    return to_text({.smallest = value.at("min"), .median = value.at("median"), .largest = value.at("max")},
                   of.factor, of.digits);
  std::string text;
  for (const auto& each : value) text += (text.empty() ? "" : ",") + value_text(each, of);
  return text;
}

std::string cell(const result_object& result, const column& of) {
  for (const auto& key : of.keys)
    if (auto found = result.find(key); found != result.end() && !found->is_null())
      return value_text(*found, of);
  return "-";
}

void print_line(const std::vector<std::string>& cells, const table& shown) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    auto width = std::max(shown.columns[i].width, static_cast<int>(shown.columns[i].heading.size()));
    i + 1 < cells.size() ? std::printf("%-*s ", width, cells[i].c_str())
                         : std::printf("%s\n", cells[i].c_str());
  }
}

void print_block(const result_object& result, const table& shown) {
  std::size_t width = 0;
  for (const auto& each : shown.columns) width = std::max(width, each.heading.size());
  std::printf("\n");
  for (const auto& each : shown.columns)
    std::printf("%-*s  %s\n", static_cast<int>(width), each.heading.c_str(), cell(result, each).c_str());
}

}  // namespace

std::string number_text(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

machine this_machine() {
  machine where{processor_model(), usable_cores(), 0};
  if (::getloadavg(&where.load, 1) != 1) where.load = -1;
  return where;
}

report::report(std::string bench, bool json) : bench_(std::move(bench)), json_(json), where_(this_machine()) {
  note("machine", std::to_string(where_.cores) + (where_.cores == 1 ? " core (" : " cores (") +
                      where_.processor + "), load " + number_text(where_.load, 2) + " before");
}

void report::note(const std::string& name, const std::string& text) {
  if (json_) return;
  auto line = name + std::string(name.size() < 10 ? 11 - name.size() : 1, ' ') + text + '\n';
  if (has_result_)
    std::printf("%s", line.c_str());
  else
    notes_ += line;
}

void report::add(const table& shown, result_object result) {
  if (!json_) return add_detail(shown, result);
  result_object line{
      {"bench", bench_},
      {"machine", {{"processor", where_.processor}, {"cores", where_.cores}, {"load_before", where_.load}}}};
  line.update(result);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);  // a bench that is ended has printed what it measured before
}

void report::add_detail(const table& shown, const result_object& result) {
  if (json_) return;
  std::printf("%s", std::exchange(notes_, "").c_str());
  has_result_ = true;
  std::vector<std::string> headings, cells;
  for (const auto& each : shown.columns) {
    headings.push_back(each.heading);
    cells.push_back(cell(result, each));
  }
  if (shown.layout == table_layout::blocks) {
    print_block(result, shown);
  } else {
    if (headings != headings_) print_line(headings, shown);
    print_line(cells, shown);
    headings_ = headings;
  }
  std::fflush(stdout);
}

std::string crowding_text(const machine& where, int ranks) {
  return where.cores >= ranks ? "" : ": MORE RANKS THAN CORES, they wait for each other's turn";
}

}  // namespace troupe::bench
