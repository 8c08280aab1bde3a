#include "troupe/cluster/key_values.hpp"

namespace troupe::cluster {

std::string key_values::put(const std::string& key, bytes value) {
  if (key.size() > max_key_bytes || value.size() > max_value_bytes)
    return "a key has at most " + std::to_string(max_key_bytes) + " bytes and a value " +
           std::to_string(max_value_bytes) + ", got " + std::to_string(key.size()) + " and " +
           std::to_string(value.size());
  auto found = values_.find(key);
  auto freed = found == values_.end() ? 0 : key.size() + found->second.size();
  auto total = total_bytes_ - freed + key.size() + value.size();
  if (total > max_total_bytes)
    return "the job's key-value store is full: it holds " + std::to_string(max_total_bytes >> 20) +
           " MiB. Make fewer groups, or keep and reuse them";
  total_bytes_ = total;
  values_.insert_or_assign(key, std::move(value));
  return {};
}

const key_values::bytes* key_values::find(const std::string& key) const {
  auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::string key_values::wait(const std::string& key, const waiter& who) {
  if (key.size() > max_key_bytes)
    return "a key has at most " + std::to_string(max_key_bytes) + " bytes, got " + std::to_string(key.size());
  auto& count = num_waiting_[who.rank];
  if (count == max_waiting)
    return "more than " + std::to_string(max_waiting) + " calls of one process wait for keys";
  ++count;
  waiting_.emplace(key, who);
  return {};
}

std::vector<key_values::waiter> key_values::take_waiters(const std::string& key) {
  auto [begin, end] = waiting_.equal_range(key);
  std::vector<waiter> taken;
  for (auto each = begin; each != end; ++each) {
    taken.push_back(each->second);
    --num_waiting_[each->second.rank];
  }
  waiting_.erase(begin, end);
  return taken;
}

void key_values::forget(const waiter& who) {
  num_waiting_[who.rank] -= std::erase_if(waiting_, [&](const auto& each) { return each.second == who; });
}

void key_values::forget_all(int rank) {
  std::erase_if(waiting_, [&](const auto& each) { return each.second.rank == rank; });
  num_waiting_.erase(rank);
}

}  // namespace troupe::cluster
