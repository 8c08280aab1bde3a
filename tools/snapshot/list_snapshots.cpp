#include "snapshot/subcommands.hpp"

#include <iomanip>
#include <iostream>

#include "troupe/files/printable_text.hpp"

namespace troupe {
namespace {

void print_as_json(const snapshot::snapshot_info& info) {
  nlohmann::ordered_json object = {
      {"event", "snapshot"}, {"step", info.step}, {"state", to_string(info.state)}};
  if (info.manifest) {
    object["created"] = info.manifest->created;
    object["stages"] = info.manifest->num_stages;
    object["size_bytes"] = total_bytes(*info.manifest);
  }
  object["folder"] = info.folder.string();
  object["problem"] = info.problem;
  print_json(object);
}

void print_row(const std::string& step, const std::string& created, const std::string& stages,
               const std::string& size, std::string_view state, const std::string& problem) {
  std::cout << std::right << std::setw(12) << step << "  " << std::left << std::setw(20) << created << "  "
            << std::right << std::setw(6) << stages << "  " << std::setw(9) << size << "  " << state;
  if (!problem.empty()) std::cout << ": " << problem;
  std::cout << '\n';
}

void print_as_row(const snapshot::snapshot_info& info) {
  auto known = info.manifest.has_value();
  print_row(std::to_string(info.step), known ? files::printable(info.manifest->created) : "-",
            known ? std::to_string(info.manifest->num_stages) : "-",
            known ? readable_size(total_bytes(*info.manifest)) : "-", to_string(info.state), info.problem);
}

}  // namespace

int list_snapshots(const snapshot_query& query) {
  auto infos = find_snapshots(open_store(query), query);
  if (!query.json && infos.empty()) std::cout << "no snapshots in " << query.folder.string() << '\n';
  if (!query.json && !infos.empty()) print_row("step", "created", "stages", "size", "state", "");
  for (const auto& info : infos) query.json ? print_as_json(info) : print_as_row(info);
  return 0;
}

}  // namespace troupe
