#include "troupe/collective/patience.hpp"

#include <algorithm>

namespace troupe {

void patience::begin() {
  rounds_ = 0;
  yielding_ = {};
}

patience::step patience::next() {
  if (++rounds_ < spinning_rounds_) return step::spin;
  return yielding_ <= longest_yielding ? step::yield : step::sleep;
}

void patience::moved() {
  if (rounds_ == 0) return;
  spinning_rounds_ = rounds_ < spinning_rounds_ ? std::min(spinning_rounds_ + 1, most_spinning_rounds)
                                                : std::max(spinning_rounds_ / 2, least_spinning_rounds);
  begin();
}

}  // namespace troupe
