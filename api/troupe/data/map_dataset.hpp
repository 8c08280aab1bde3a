#pragma once
#include <cstdint>
#include <functional>

#include "troupe/data/dataset.hpp"

namespace troupe {

/// Returns the sample with an index in [0, N), of shape [...], and its label, of any shape; or no label. A
/// pure function of the index. Called from several threads at once.
using sample_function = std::function<labelled_samples(std::int64_t index)>;

/// A data set of shape `samples`, [N, ...], whose samples `get` reads or makes one by one (PyTorch's
/// map-style Dataset). Throws std::invalid_argument for a shape without axes and for an empty function;
/// reading throws it if `get` returns another shape, or samples that differ in dtype, label's shape or
/// whether they have one.
dataset_ptr map_dataset(shape samples, sample_function get);

}  // namespace troupe
