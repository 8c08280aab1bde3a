#include "troupe/snapshot/read_tensors.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>

#include "troupe/contents/step_counts.hpp"
#include "troupe/snapshot/gathered_tensor.hpp"

namespace troupe::snapshot {
namespace {

using tensors_by_name = std::multimap<std::string_view, gathered_tensor>;

bool is_needed(const manifest_part& entry, const tensors_by_name& gathered) {
  auto lacks = [&](const tensor_contents& held) {
    auto [begin, end] = gathered.equal_range(held.name);
    return std::any_of(begin, end, [&](const auto& one) { return one.second.lacks_some_of(held); });
  };
  if (entry.contents) return std::ranges::any_of(*entry.contents, lacks);
  return std::ranges::any_of(gathered, [](const auto& one) { return one.second.missing() != nullptr; });
}

/// Replicas may differ in what no part marks as of one replica, such as running means: the parts of
/// `wanted`'s replica come before all others.
int distance(const layout::part_id& held, const layout::part_id& wanted) {
  if (held == wanted) return 0;
  return held.cell.replica == wanted.cell.replica ? 1 : 2;
}

}  // namespace

std::vector<named_tensor> read_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                       const std::vector<tensor_contents>& wanted,
                                       const layout::part_id& first) {
  tensors_by_name gathered;
  std::vector<gathered_tensor*> in_order;
  for (const auto& one : wanted)
    in_order.push_back(&gathered.emplace(one.name, gathered_tensor(one))->second);
  auto parts = manifest.parts;
  std::ranges::stable_sort(parts, {},
                           [&](const manifest_part& entry) { return distance(entry.part, first); });
  for (const auto& entry : parts) {
    if (!is_needed(entry, gathered)) continue;
    auto part = store.open_part(manifest, entry.part);
    for (std::size_t at = 0; at < part.contents().size(); ++at) {
      auto [begin, end] = gathered.equal_range(part.contents()[at].name);
      auto read = [&](std::int64_t begin_at, std::span<std::byte> to) { part.read(at, begin_at, to); };
      for (auto one = begin; one != end; ++one)
        one->second.take(part.contents()[at], read, to_string(entry.part) + " of the snapshot");
    }
  }
  std::vector<named_tensor> result;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (in_order[at]->missing() && !manifest.counts_steps && is_step_count(wanted[at]))
      in_order[at]->set_unknown_steps();
    if (const auto* hole = in_order[at]->missing())
      throw files::snapshot_error("no part of the snapshot of step " + std::to_string(manifest.step) +
                                  " holds " + to_string(*hole) + " of " + wanted[at].name + " (" +
                                  described(wanted[at]) +
                                  "): it belongs to another model. Use another --snapshot-dir");
    result.push_back(in_order[at]->result());
  }
  return result;
}

}  // namespace troupe::snapshot
