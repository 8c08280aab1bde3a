#pragma once
#include <cstdint>
#include <filesystem>

#include "troupe/data/dataset.hpp"

namespace troupe {

enum class text_part : std::uint8_t { train, evaluate };

/// A file's bytes as tokens: samples u8 [N, context], one after the other, and for each token the one that
/// follows it, labels u8 [N, context]. What is left at the end is not used. `part` says which: the last tenth
/// of the samples is for evaluation, the others for training. Throws bad_input if the file cannot be read, or
/// is too short for two samples.
dataset_ptr text_bytes(const std::filesystem::path& file, std::int64_t context, text_part part);

}  // namespace troupe
