#pragma once
#include <cstdint>
#include <filesystem>

#include "troupe/data/dataset.hpp"

namespace troupe {

enum class text_part : std::uint8_t { train, evaluate };

/// A data set for language models with bytes as tokens: consecutive samples u8 [N, context], and as labels
/// the next token of each, u8 [N, context]. An incomplete sample at the end is not used. The last tenth of
/// the samples is the part for evaluation, the rest for training. Throws bad_input if the file cannot be read
/// or is too short for two samples, std::invalid_argument for a context below 1.
dataset_ptr text_bytes(const std::filesystem::path& file, std::int64_t context, text_part part);

}  // namespace troupe
