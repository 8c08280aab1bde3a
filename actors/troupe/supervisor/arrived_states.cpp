#include "troupe/supervisor/arrived_states.hpp"

namespace troupe {

void arrived_states::add(std::uint64_t generation, const part_id& part, const tensor& packed) {
  if (generation < generation_) return;
  if (generation > generation_) packed_.clear();
  generation_ = generation;
  packed_[part] = packed;
}

tensor arrived_states::find(std::uint64_t generation, const part_id& part) const {
  auto found = packed_.find(part);
  if (generation != generation_ || found == packed_.end()) return {};
  return found->second;
}

}  // namespace troupe
