#include "troupe/scheduler/state/distributed_hash.hpp"

#include <iterator>

#include "troupe/error/errors.hpp"

namespace troupe::actors::scheduler {

bool distributed_hash::add(std::uint32_t stage, const std::vector<std::string>& names) {
  if (!known_.insert(stage).second) return false;
  for (const auto& name : names)
    if (!stage_of_.emplace(name, stage).second)
      throw_invalid("weights_sha256", "each name once", "'" + name + "' twice");
  return known_.size() == num_stages_;
}

std::optional<distributed_hash::turn> distributed_hash::next_turn() const {
  auto next = std::next(stage_of_.begin(), static_cast<std::ptrdiff_t>(num_hashed_));
  if (next == stage_of_.end()) return {};
  turn found{next->second, num_hashed_, {}, hasher_.state()};
  for (; next != stage_of_.end() && next->second == found.stage; ++next) found.names.push_back(next->first);
  return found;
}

bool distributed_hash::on_hashed(std::uint64_t num_hashed, const std::vector<std::byte>& state) {
  auto turn = known_.size() == num_stages_ ? next_turn() : std::nullopt;
  if (!turn || num_hashed != turn->num_hashed + turn->names.size()) return false;
  num_hashed_ = num_hashed;
  hasher_ = snapshot::weights_hasher(state);
  return true;
}

}  // namespace troupe::actors::scheduler
