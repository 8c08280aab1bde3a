#include "troupe/scheduler/sampled_median.hpp"

#include <algorithm>

namespace troupe {

void sampled_median::add(double value) {
  if (num_seen_++ % stride_ != 0) return;
  if (kept_.size() == max_kept) {
    for (std::size_t i = 0; 2 * i < kept_.size(); ++i) kept_[i] = kept_[2 * i];
    kept_.resize(max_kept / 2);
    stride_ *= 2;
  }
  // If the stride has just doubled, this value's index, max_kept times the old stride, is a multiple of the
  // new one too.
  kept_.push_back(value);
}

double sampled_median::median() const {
  if (kept_.empty()) return 0;
  auto values = kept_;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace troupe
