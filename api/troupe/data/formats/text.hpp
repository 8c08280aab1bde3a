#pragma once
#include <cstdint>
#include <filesystem>

#include "troupe/data/dataset.hpp"
#include "troupe/tensor/stored_number.hpp"

namespace troupe {

/// Which samples of a text: `train` all but the last tenth, `evaluate` the last tenth, `all` where training
/// and evaluation have files of their own.
enum class text_part : std::uint8_t { train, evaluate, all };

/// A data set for language models with bytes as tokens: consecutive samples u8 [N, context], and as labels
/// the next token of each, u8 [N, context]. An incomplete sample at the end is not used. The last tenth of
/// the samples is the part for evaluation, the rest for training. Throws bad_input if the file cannot be read
/// or is too short for two samples (for one, if all are of one part), std::invalid_argument for a context
/// below 1.
dataset_ptr text_bytes(const std::filesystem::path& file, std::int64_t context, text_part part);

struct token_options {
  /// The type of the ids in the file.
  stored_number type = stored_number::u16;
  /// Ids are below it, those of the model's embedding. 0: not checked when they are read.
  std::int64_t vocabulary = 0;
};

/// As text_bytes, of a file that is nothing but token ids, as numpy.ndarray.tofile writes them: nanoGPT's
/// train.bin and val.bin have u16. The tokens are i32 (u8 and i64 where the file has such ids, i64 for u32
/// too), read from the file when they are needed. Throws bad_input, also when samples are read, for an id
/// that is negative or not below `vocabulary`, and std::invalid_argument for a type that is no integer.
dataset_ptr text_tokens(const std::filesystem::path& file, std::int64_t context, text_part part,
                        const token_options& options = {});

}  // namespace troupe
