#include "troupe/snapshot/numeric_class_problem.hpp"

namespace troupe::snapshot {

std::string numeric_class_problem(const snapshot_manifest& manifest, const std::string& own) {
  if (manifest.numeric_class == own) return {};
  return "the snapshot of step " + std::to_string(manifest.step) + " was computed with the numeric class " +
         manifest.numeric_class + ", these processes have " + own +
         ": continuing from it would not give the bits of its job. Use the version of Troupe, the GPUs "
         "and libraries that wrote it, or start from scratch in another --snapshot-dir";
}

}  // namespace troupe::snapshot
