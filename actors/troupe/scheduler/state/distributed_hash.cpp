#include "troupe/scheduler/state/distributed_hash.hpp"

#include <iterator>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::actors::scheduler {

bool distributed_hash::add(const holder& from, const std::vector<std::string>& names,
                           const std::vector<std::int64_t>& firsts) {
  if (names.size() != firsts.size())
    throw_invalid("weights_sha256", "the first element of each name",
                  std::to_string(firsts.size()) + " for " + std::to_string(names.size()) + " names");
  if (!known_.insert(from).second) return false;
  for (std::size_t index = 0; index < names.size(); ++index)
    if (!holder_of_.emplace(std::pair(names[index], firsts[index]), from).second)
      throw_invalid("weights_sha256", "each name once", "'" + names[index] + "' twice");
  return known_.size() == num_holders_;
}

std::optional<distributed_hash::turn> distributed_hash::next_turn() const {
  auto next = std::next(holder_of_.begin(), static_cast<std::ptrdiff_t>(num_hashed_));
  if (next == holder_of_.end()) return {};
  turn found{next->second, num_hashed_, {}, hasher_.state()};
  for (; next != holder_of_.end() && next->second == found.holder; ++next)
    found.names.push_back(next->first.first);
  return found;
}

bool distributed_hash::on_hashed(std::uint64_t num_hashed, const std::vector<std::byte>& state) {
  auto turn = known_.size() == num_holders_ ? next_turn() : std::nullopt;
  if (!turn || num_hashed != turn->num_hashed + turn->names.size()) return false;
  num_hashed_ = num_hashed;
  hasher_ = snapshot::weights_hasher(state);
  return true;
}

}  // namespace troupe::actors::scheduler
