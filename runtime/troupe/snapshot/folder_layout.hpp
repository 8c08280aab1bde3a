#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/layout/part_id.hpp"

namespace troupe::snapshot {

constexpr std::string_view manifest_file_name = "manifest.json";
/// The file with the results of calls.
constexpr std::string_view calls_file_name = "calls.part";

/// "step-000000000120"
std::string step_folder_name(std::uint64_t step);
/// The step of a folder with such a name; empty for any other name.
std::optional<std::uint64_t> step_from_folder_name(std::string_view name);
/// The step of a snapshot that was set aside, from "set-aside-step-000000000120", possibly with a suffix "-2"
/// and so on; empty for any other name.
std::optional<std::uint64_t> step_from_set_aside_name(std::string_view name);
/// The first such name that is free in `root`.
std::string free_set_aside_name(const std::filesystem::path& root, std::uint64_t step);
/// "stage-0002.part", and whatever of the rest is not 0: "stage-0002-replica-0001-shard-0003.part".
std::string part_file_name(const layout::part_id& part);

/// Throws bad_input where `folder` is a snapshot itself, FOLDER/step-000000000120: it has none in it, and
/// what is written does not belong there.
void require_no_snapshot(const std::filesystem::path& folder);

/// The steps that have a folder in `root`, newest first. A `root` that does not exist has none. Throws
/// snapshot_error if it cannot be read.
std::vector<std::uint64_t> steps_in(const std::filesystem::path& root);

/// Names of everything in `folder`; none if it does not exist. Throws snapshot_error if it cannot be read.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace troupe::snapshot
