#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe {

/// The arguments of a subcommand of `troupe snapshot`.
struct snapshot_query {
  std::filesystem::path folder;
  std::optional<std::uint64_t> step;
  bool json = false;
  std::filesystem::path output;  ///< file that `export` writes
  std::string max_file_size;     ///< of each, if `output` is the index of several; empty: the usual one
  bool optimizer = false;        ///< export: the optimizer's state too
};

/// The store in the given folder. Throws bad_input if there is no such folder.
snapshot::snapshot_store open_store(const snapshot_query& query);

/// The snapshots of the given step, or all, newest first, then those that were set aside. Throws bad_input if
/// there is none of that step.
std::vector<snapshot::snapshot_info> find_snapshots(const snapshot::snapshot_store& store,
                                                    const snapshot_query& query);

/// The finished snapshot of the given step, or the newest one. Throws snapshot_error if it cannot be read,
/// and bad_input if there is none.
snapshot::snapshot_manifest choose_finished(const snapshot::snapshot_store& store,
                                            const snapshot_query& query);

/// One line of --json output.
void print_json(const nlohmann::ordered_json& object);

/// "812 B", "1.5 kB", "24.0 MB"
std::string readable_size(std::uint64_t size_bytes);

/// The bytes of all parts that the manifest lists.
std::uint64_t total_bytes(const snapshot::snapshot_manifest& manifest);

}  // namespace troupe
