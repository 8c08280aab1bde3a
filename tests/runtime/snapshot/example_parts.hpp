#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "troupe/snapshot/snapshot_store.hpp"

namespace troupe::testing {

/// A small part whose elements depend on step and stage only. `num_elements` sizes its largest tensor.
inline snapshot::snapshot_part example_part(std::uint64_t step, int stage, int num_stages,
                                            std::int64_t num_elements = 100) {
  auto name = std::to_string(stage) + ".weight";
  return {"job-7",
          step,
          {{.stage = stage}},
          static_cast<std::uint32_t>(num_stages),
          3,
          "avx2",
          {{name, tensor::full({num_elements}, static_cast<float>(step) + 0.5F)},
           {"adam.step", tensor::from(std::vector<std::int64_t>{static_cast<std::int64_t>(step)}, {})},
           {"empty", tensor::empty({0, 4})}}};
}

inline snapshot::snapshot_manifest example_manifest(std::uint64_t step,
                                                    std::vector<snapshot::manifest_part> parts) {
  return {"job-7",
          step,
          3,
          static_cast<std::uint32_t>(parts.size()),
          "avx2",
          "",
          {{"seed", "7"}},
          {},
          {},
          std::move(parts),
          {}};
}

/// Writes and commits all parts of a step.
inline snapshot::snapshot_manifest write_snapshot(snapshot::snapshot_store& store, std::uint64_t step,
                                                  int num_stages = 2) {
  std::vector<snapshot::manifest_part> parts;
  for (int stage = 0; stage < num_stages; ++stage)
    parts.push_back(
        store.write_part(step, {{stage}}, encode_part(example_part(step, stage, num_stages)).bytes()));
  auto manifest = example_manifest(step, std::move(parts));
  store.commit(manifest);
  return manifest;
}

/// All of an encoded part.
inline snapshot::snapshot_part decode_part(std::span<const std::byte> bytes) {
  snapshot::part_reader reader(snapshot::source_in(bytes));
  auto part = reader.header();
  for (std::size_t tensor = 0; tensor < part.contents.size(); ++tensor)
    part.tensors.push_back(reader.read(tensor));
  reader.check();
  return part;
}

inline std::vector<named_tensor> tensors_in(snapshot::stored_part part) {
  std::vector<named_tensor> all;
  for (std::size_t tensor = 0; tensor < part.contents().size(); ++tensor) all.push_back(part.read(tensor));
  return all;
}

/// The steps that are listed, newest first.
inline std::vector<std::uint64_t> listed_steps(const snapshot::snapshot_store& store) {
  std::vector<std::uint64_t> steps;
  for (const auto& info : store.list()) steps.push_back(info.step);
  return steps;
}

/// The step of the newest valid snapshot, 0 if there is none; its warnings go to `warnings`.
inline std::uint64_t newest_valid_step(const snapshot::snapshot_store& store,
                                       std::vector<std::string>* warnings = nullptr) {
  auto newest = store.newest_valid([&](const std::string& warning) {
    if (warnings) warnings->push_back(warning);
  });
  return newest ? newest->step : 0;
}

/// Every file below `folder`, by its name relative to it.
std::vector<std::string> files_below(const std::filesystem::path& folder);

/// Whether the same bits: dtype, shape, elements.
bool same_tensors(const std::vector<named_tensor>& left, const std::vector<named_tensor>& right);

}  // namespace troupe::testing
