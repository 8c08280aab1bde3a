#pragma once
#include "package/synthetic.hpp"

namespace troupe::testing {

/// four_corners, of which only some samples have a label: the others have nn::CrossEntropy's ignore_index. In
/// some microbatches all do, in some none.
inline dataset_ptr partly_labelled(int num_samples) {
  auto points = four_corners(num_samples);
  auto labels = tensor::empty({num_samples}, dtype::i64);
  for (int i = 0; i < num_samples; ++i) {
    auto at = static_cast<std::size_t>(i);
    bool counts = i % 7 % 2 == 0 && i % 3 != 1;
    labels.values<std::int64_t>()[at] = counts ? points->labels().values<std::uint8_t>()[at] : -100;
  }
  return std::make_shared<dataset>(labelled_samples{points->samples(), labels});
}

}  // namespace troupe::testing
