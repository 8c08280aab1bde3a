#pragma once
#include <filesystem>
#include <optional>

#include "troupe/data/dataset.hpp"

namespace troupe {

struct npy_dataset_options {
  /// The dtypes of samples and labels; none: those of the files, as npy_options::as.
  std::optional<dtype> samples_as = {}, labels_as = {};
};

/// A data set in NPY files that is read in parts and never held in memory as a whole: samples [N, ...] and
/// labels [N, ...] in a file each; without labels if `labels` is empty. The files are open while they are
/// read. Throws bad_input, as read_npy does, for files that are missing, truncated or of another format, for
/// an array without axes and for labels of another number than samples.
dataset_ptr npy_dataset(const std::filesystem::path& samples, const std::filesystem::path& labels = {},
                        const npy_dataset_options& options = {});

}  // namespace troupe
