#include "report.hpp"

#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>

namespace troupe::doctor {
namespace {

const char* word(verdict status) {
  switch (status) {
    case verdict::ok:
      return "ok";
    case verdict::absent:
      return "absent";
    case verdict::warning:
      return "warning";
    case verdict::missing:
      return "missing";
  }
  return "";
}

}  // namespace

bool demo_can_run(const findings& found) {
  return std::ranges::find(found, verdict::missing, &finding::status) == found.end();
}

void print_table(const findings& found, std::ostream& out) {
  std::size_t width = 0;
  for (const auto& line : found) width = std::max(width, line.name.size());
  const int name_width = static_cast<int>(width);
  std::string group;
  for (const auto& line : found) {
    if (line.group != group) out << (group.empty() ? "" : "\n") << line.group << '\n';
    group = line.group;
    out << "  " << std::left << std::setw(9) << word(line.status) << std::setw(name_width) << line.name
        << "  " << line.value << '\n';
    if (!line.remedy.empty()) out << std::string(13 + width, ' ') << "-> " << line.remedy << '\n';
  }
  out << (demo_can_run(found) ? "\nThe demo can run here.\n"
                              : "\nThe demo cannot run here: see what is missing.\n");
}

void print_json(const findings& found, std::ostream& out) {
  // Text from files may be invalid UTF-8.
  auto print = [&out](const nlohmann::ordered_json& line) {
    out << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  };
  for (const auto& [group, name, status, value, remedy] : found)
    print({{"group", group}, {"name", name}, {"status", word(status)}, {"value", value}, {"remedy", remedy}});
  print({{"event", "done"}, {"demo_can_run", demo_can_run(found)}});
}

}  // namespace troupe::doctor
