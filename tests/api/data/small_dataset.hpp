#pragma once
#include <vector>

#include "troupe/data/dataset.hpp"

namespace troupe::testing {

/// Sample i is [i, i + 1] and its label i; at most 255 samples.
inline dataset_ptr small_dataset(int num_samples) {
  std::vector<std::uint8_t> samples, labels;
  for (int i = 0; i < num_samples; ++i) {
    samples.push_back(static_cast<std::uint8_t>(i));
    samples.push_back(static_cast<std::uint8_t>(i + 1));
    labels.push_back(static_cast<std::uint8_t>(i));
  }
  return std::make_shared<dataset>(
      labelled_samples{tensor::from(samples, {num_samples, 2}), tensor::from(labels, {num_samples})});
}

}  // namespace troupe::testing
