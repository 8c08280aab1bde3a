#include "snapshot/snapshot_query.hpp"

#include <array>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string_view>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/folder_layout.hpp"

namespace troupe {

snapshot::snapshot_store open_store(const snapshot_query& query) {
  std::error_code problem;
  auto type = std::filesystem::status(query.folder, problem).type();
  if (problem && type != std::filesystem::file_type::not_found)
    throw bad_input("cannot read the snapshot folder '" + query.folder.string() + "': " + problem.message());
  if (type != std::filesystem::file_type::directory)
    throw bad_input("there is no snapshot folder '" + query.folder.string() +
                    "'. Expected the folder that the job's --snapshot-dir named");
  snapshot::require_no_snapshot(query.folder);
  return snapshot::snapshot_store({query.folder});
}

std::vector<snapshot::snapshot_info> find_snapshots(const snapshot::snapshot_store& store,
                                                    const snapshot_query& query) {
  auto found = store.list();
  auto aside = store.list_set_aside();
  found.insert(found.end(), std::make_move_iterator(aside.begin()), std::make_move_iterator(aside.end()));
  if (!query.step) return found;
  std::erase_if(found, [&](const snapshot::snapshot_info& info) { return info.step != *query.step; });
  if (found.empty())
    throw bad_input("there is no snapshot of step " + std::to_string(*query.step) + " in " +
                    query.folder.string() + ". `troupe snapshot list` shows the existing ones");
  return found;
}

snapshot::snapshot_manifest choose_finished(const snapshot::snapshot_store& store,
                                            const snapshot_query& query) {
  for (auto& info : find_snapshots(store, query)) {
    if (info.state == snapshot::snapshot_state::set_aside ||
        (info.state == snapshot::snapshot_state::incomplete && !query.step))
      continue;
    if (!info.manifest || info.manifest->step != info.step)
      throw files::snapshot_error(info.folder.string() + " cannot be read: " + info.problem +
                                  ". --step chooses another snapshot");
    return *info.manifest;
  }
  throw bad_input("there is no finished snapshot in " + query.folder.string());
}

void print_json(const nlohmann::ordered_json& object) {
  std::cout << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

std::string readable_size(std::uint64_t size_bytes) {
  if (size_bytes < 1000) return std::to_string(size_bytes) + " B";
  constexpr std::array<std::string_view, 4> units = {"kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(size_bytes) / 1000;
  std::size_t unit = 0;
  for (; size >= 999.95 && unit + 1 < units.size(); ++unit) size /= 1000;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", size, units[unit].data());
  return text.data();
}

std::uint64_t total_bytes(const snapshot::snapshot_manifest& manifest) {
  std::uint64_t sum = 0;
  for (const auto& part : manifest.parts) sum += part.size_bytes;
  if (manifest.calls) sum += manifest.calls->size_bytes;
  return sum;
}

}  // namespace troupe
