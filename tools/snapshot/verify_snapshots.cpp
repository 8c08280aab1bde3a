#include "snapshot/subcommands.hpp"

#include <iostream>

namespace troupe {
namespace {

/// The result of reading a whole snapshot.
struct verdict {
  snapshot::snapshot_info info;
  std::vector<std::string> problems;
};

verdict judge(const snapshot::snapshot_store& store, snapshot::snapshot_info info) {
  auto problems = store.verify(info);
  if (!problems.empty() && info.state == snapshot::snapshot_state::ok)
    info.state = snapshot::snapshot_state::damaged;
  return {std::move(info), std::move(problems)};
}

void print_as_json(const verdict& judged) {
  print_json({{"event", "verified"},
              {"step", judged.info.step},
              {"state", to_string(judged.info.state)},
              {"problems", judged.problems}});
}

void print_as_text(const verdict& judged) {
  std::cout << "step " << judged.info.step << ": " << to_string(judged.info.state);
  if (judged.problems.empty())
    std::cout << " (" << judged.info.manifest->parts.size() << " parts, "
              << readable_size(total_bytes(*judged.info.manifest)) << ")";
  std::cout << '\n';
  for (const auto& problem : judged.problems) std::cout << "  " << problem << '\n';
}

}  // namespace

int verify_snapshots(const snapshot_query& query) {
  auto store = open_store(query);
  auto infos = find_snapshots(store, query);
  if (!query.json && infos.empty()) std::cout << "no snapshots in " << query.folder.string() << '\n';
  std::optional<snapshot::snapshot_state> newest;
  for (auto& info : infos) {
    auto judged = judge(store, std::move(info));
    query.json ? print_as_json(judged) : print_as_text(judged);
    bool counts = judged.info.state != snapshot::snapshot_state::incomplete &&
                  (judged.info.state != snapshot::snapshot_state::set_aside || query.step);
    if (!newest && counts) newest = judged.info.state;
  }
  return newest == snapshot::snapshot_state::ok ? 0 : 1;
}

}  // namespace troupe
