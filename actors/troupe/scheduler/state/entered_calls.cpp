#include "troupe/scheduler/state/entered_calls.hpp"

#include <algorithm>

namespace troupe::actors::scheduler {

void entered_calls::enter(int rank, const job::call_request& request, std::uint64_t description_hash) {
  entered_[rank] = request;
  if (description_hash == 0)
    hashes_.erase(rank);
  else
    hashes_[rank] = description_hash;
}

bool entered_calls::is_complete(int world_size, std::size_t index) const {
  return entered_.size() == static_cast<std::size_t>(world_size) &&
         std::ranges::all_of(entered_, [&](const auto& one) { return one.second.index == index; });
}

std::optional<std::string> entered_calls::difference_of_jobs() const {
  if (std::ranges::all_of(hashes_, [this](const auto& one) { return one.second == hashes_.begin()->second; }))
    return {};
  std::map<int, agreement::job_description> described;
  for (const auto& [rank, hash] : hashes_)
    if (auto known = descriptions_.find(rank); known != descriptions_.end()) described.insert(*known);
  return description_difference(described).value_or("job: the hashes of its description differ");
}

std::optional<std::string> entered_calls::disagreement() const {
  auto difference = difference_of_jobs();
  if (!difference) {
    std::map<int, agreement::job_description> described;
    for (const auto& [rank, request] : entered_) described.emplace(rank, description_of(request));
    difference = description_difference(described);
  }
  if (!difference) return {};
  // A call that one process finds fault with is another one than those of the others.
  auto found = problems();
  return "the processes of the job differ: " + found + (found.empty() ? "" : "; ") + *difference +
         ". Start every process with the same program and options, and let each make the same calls in the "
         "same order";
}

/// Only processes that read samples know their content.
std::uint64_t entered_calls::hash_of_request() const {
  auto agreed = request();
  for (const auto& [rank, each] : entered_)
    if (agreed.content.empty()) agreed.content = each.content;
  return description_of(agreed).hash();
}

std::string entered_calls::problems() const {
  std::string all;
  for (const auto& [rank, request] : entered_) {
    if (request.problem.empty()) continue;
    all += (all.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + request.problem;
  }
  return all;
}

}  // namespace troupe::actors::scheduler
