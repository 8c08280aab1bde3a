#pragma once
#include <filesystem>
#include <string_view>

#include "troupe/data/dataset.hpp"

namespace troupe {

enum class data_split { train, test };

/// "train", "test"
std::string_view to_string(data_split split);

/// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747), or any other data set in files with MNIST's
/// names and format: 60,000 training and 10,000 test images of 28 x 28 pixels in 10 classes. Samples u8 [N,
/// 28, 28], labels u8 [N].
///
/// Checks the headers of both files at once and decompresses the images at first use (about 0.3 s). Throws
/// bad_input with the command that installs the data set if the folder or a file is missing or malformed.
dataset_ptr fashion_mnist(const std::filesystem::path& folder, data_split split);

}  // namespace troupe
