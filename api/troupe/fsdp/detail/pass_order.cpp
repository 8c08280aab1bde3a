#include "troupe/fsdp/detail/pass_order.hpp"

#include <algorithm>
#include <utility>

namespace troupe::detail {

void pass_order::begin() {
  seen_.clear();
  position_ = 0;
  is_known_ = false;
}

std::vector<std::size_t> pass_order::first(std::size_t count) const {
  return {expected_.begin(),
          expected_.begin() + static_cast<std::ptrdiff_t>(std::min(count, expected_.size()))};
}

void pass_order::note(std::size_t unit) {
  seen_.push_back(unit);
  auto from = expected_.begin() + static_cast<std::ptrdiff_t>(position_);
  auto found = std::find(from, expected_.end(), unit);
  is_known_ = found != expected_.end();
  if (is_known_) position_ = static_cast<std::size_t>(found - expected_.begin()) + 1;
}

std::vector<std::size_t> pass_order::next(std::size_t count) const {
  if (!is_known_) return {};
  auto from = expected_.begin() + static_cast<std::ptrdiff_t>(position_);
  auto left = static_cast<std::size_t>(expected_.end() - from);
  return {from, from + static_cast<std::ptrdiff_t>(std::min(count, left))};
}

void pass_order::end() {
  if (!seen_.empty()) expected_ = std::exchange(seen_, {});
  begin();
}

}  // namespace troupe::detail
