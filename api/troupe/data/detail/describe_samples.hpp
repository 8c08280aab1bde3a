#pragma once
#include <string>

#include "troupe/data/dataset.hpp"

namespace troupe::detail {

/// Describes a data set without loading it: "60000 samples of [28, 28]", and the stream if it is one.
std::string describe_samples(const dataset& samples);

/// "a stream of 3 shards, shuffle buffer 500, 8d2f01c3a4b5e697" with a hash of the shards' sizes and names;
/// empty if the data set is no stream.
std::string describe_stream(const dataset& samples);

/// Describes the content of a data set: dtypes and a hash of a few samples and labels, which usually differs
/// between data sets: "u8, labels u8[60000], 8d2f01c3a4b5e697". Loads a data set in memory. Throws bad_input
/// if there are no labels.
std::string describe_content(dataset& samples);

/// The same without the labels.
std::string describe_inputs(dataset& samples);

}  // namespace troupe::detail
