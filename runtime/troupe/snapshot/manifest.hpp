#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "troupe/layout/cover.hpp"

namespace troupe::snapshot {

/// One part as the manifest lists it.
struct manifest_part {
  layout::part_id part;
  std::string file;  ///< relative to the snapshot's folder
  std::uint64_t size_bytes = 0;
  std::string checksum;  ///< hex; the one at the file's end, which covers all the rest of it
  std::string host;      ///< name of the host that wrote it
  /// What it holds. None: unknown, as in manifests of format versions 1 and 2; the part itself says it.
  std::optional<std::vector<tensor_contents>> contents = {};
  /// equal: it is that of all replicas. own in manifests before format version 6, which list each replica's.
  layout::replica_content content = layout::replica_content::own;
  bool operator==(const manifest_part&) const = default;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(part, file, size_bytes, checksum, host, contents, content);
  }
};

/// A file besides the parts, as the manifest lists it; see manifest_part.
struct manifest_file {
  std::string file;
  std::uint64_t size_bytes = 0;
  std::string checksum;
  std::string host;
  bool operator==(const manifest_file&) const = default;
};

/// Lists the files of a snapshot. It is written last: a snapshot exists when its manifest does.
struct snapshot_manifest {
  std::string job_id;
  std::uint64_t step = 0;
  std::uint64_t generation = 0;
  std::uint32_t num_stages = 1;
  std::string numeric_class;
  std::string created;  ///< UTC, ISO 8601; snapshot_store::commit fills it in where it is empty
  /// Options the bits depend on (seed, batch, microbatches, model fingerprint, ...), by name. A job that
  /// resumes compares.
  std::vector<std::pair<std::string, std::string>> identity;
  /// What may be another when a job resumes, which is told then: the optimizer, its options and the loss.
  /// Whether the state fits is decided by "optimizer". None: unknown, as in manifests before format
  /// version 7.
  std::optional<std::vector<std::pair<std::string, std::string>>> settings;
  /// Describes the data set from which its step took samples; empty: the program gave the batch. None:
  /// unknown, as in manifests before format version 5.
  std::optional<std::string> data;
  std::vector<manifest_part> parts;  ///< in ascending order of their ids
  /// The results of the job's completed calls, see written_blocks, for a job that goes on: the first
  /// size_bytes of a file that may be longer, and their checksum. None: unknown, as in manifests before
  /// format version 4.
  std::optional<manifest_file> calls;
  /// Whether these results can be given again by a job that resumes; false in manifests before format version
  /// 8, whose results do not say what was asked for.
  bool calls_can_be_repeated = true;
  /// Whether the state counts the steps of each parameter (step_counts.hpp); false in manifests before format
  /// version 7.
  bool counts_steps = true;
  bool operator==(const snapshot_manifest&) const = default;
};

/// Checks the manifest itself, without its files (stages without a part, parts out of order or under other
/// names, tensors that the parts together do not hold exactly once, see cover_problem). Returns what is
/// wrong; empty if nothing is.
std::string problem_of(const snapshot_manifest& manifest);

/// The differences between the identity of the job (`wanted`) and that of a snapshot, by name: "seed is 7,
/// the snapshot has 1; ..."; empty if they are equal. The data are compared when training goes on, since they
/// are those of a call.
std::string identity_differences(const std::vector<std::pair<std::string, std::string>>& wanted,
                                 const std::vector<std::pair<std::string, std::string>>& found);

/// The optimizer that the settings name; empty if they name none.
std::string optimizer_in(const std::vector<std::pair<std::string, std::string>>& settings);

/// The differences of the settings but for the optimizer, a text for each: "optimizer lr was 0.001 in the
/// snapshot, and is 0.01". Those of another optimizer's options are left out.
std::vector<std::string> settings_differences(const std::vector<std::pair<std::string, std::string>>& wanted,
                                              const std::vector<std::pair<std::string, std::string>>& found);

/// The time in `created`; empty if the text is no time.
std::optional<std::chrono::sys_seconds> time_written(const snapshot_manifest& manifest);

/// The manifest as JSON, one field a line, with a checksum over the others. Bytes that are no UTF-8 are
/// replaced.
std::string manifest_text(const snapshot_manifest& manifest);

/// Parses manifest_text's form. Throws snapshot_error saying what is wrong with the text.
snapshot_manifest manifest_from_text(std::string_view text);

/// Why processes of the numeric class `own` cannot continue from a snapshot with the bits of the job that
/// wrote it, and what to do; empty if they can.
std::string numeric_class_problem(const snapshot_manifest& manifest, const std::string& own);

}  // namespace troupe::snapshot
