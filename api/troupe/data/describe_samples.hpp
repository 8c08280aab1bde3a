#pragma once
#include <string>

#include "troupe/data/dataset.hpp"

namespace troupe {

/// What is known of a data set before it is read: "60000 samples of [28, 28]".
std::string describe_samples(const dataset& samples);

/// Its dtypes, and a hash of a few samples and their labels by which different data show as a rule: "u8,
/// labels u8[60000], 8d2f01c3a4b5e697". Reads it.
std::string describe_content(dataset& samples);

/// The same of the samples alone.
std::string describe_inputs(dataset& samples);

}  // namespace troupe
