#include "troupe/snapshot_writer/read_metrics.hpp"

#include <algorithm>
#include <string>

#include "troupe/job/metrics_tensor.hpp"

namespace troupe::actors::snapshot_writer {
namespace {

/// The last tensor of the last stage's part of a replica.
std::map<std::int32_t, program::step_metrics> metrics_in(const snapshot::snapshot_store& store,
                                                         const snapshot::snapshot_manifest& manifest,
                                                         int replica) {
  layout::part_id last{{.stage = static_cast<int>(manifest.num_stages) - 1, .replica = replica}};
  if (std::ranges::find(manifest.parts, last, &snapshot::manifest_part::part) == manifest.parts.end())
    return {};
  auto part = store.open_part(manifest, last);
  if (part.contents().empty()) return {};
  std::vector<named_tensor> state{part.read(part.contents().size() - 1)};
  return job::extract_metrics(state, replica);
}

}  // namespace

named_tensor read_metrics(const snapshot::snapshot_store& store, const snapshot::snapshot_manifest& manifest,
                          int num_replicas) {
  std::map<std::int32_t, program::step_metrics> found;
  std::vector<program::step_metrics> all;
  for (int replica = 0; replica < num_replicas; ++replica) {
    if (!found.contains(replica)) found.merge(metrics_in(store, manifest, replica));
    if (!found.contains(replica))
      throw files::snapshot_error("the snapshot of step " + std::to_string(manifest.step) +
                                  " does not hold the metrics of replica " + std::to_string(replica) +
                                  ": it is of a job with fewer replicas. Use another --snapshot-dir");
    all.push_back(found.at(replica));
  }
  return job::replica_metrics_tensor(all);
}

}  // namespace troupe::actors::snapshot_writer
