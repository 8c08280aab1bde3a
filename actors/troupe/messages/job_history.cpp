#include "troupe/messages/job_history.hpp"

#include <algorithm>

namespace troupe::actors::messages {
namespace {

std::uint64_t generation_of(const past_recovery& one) { return one.report.generation; }

/// Returns false if a recovery of its generation is there, or was before it became too old.
bool insert_by_generation(std::deque<past_recovery>& to, const past_recovery& added) {
  auto place = std::ranges::lower_bound(to, generation_of(added), {}, generation_of);
  bool is_known = place != to.end() && generation_of(*place) == generation_of(added);
  bool is_too_old = place == to.begin() && to.size() >= job_history::max_kept;
  if (is_known || is_too_old) return false;
  to.insert(place, added);
  if (to.size() > job_history::max_kept) to.pop_front();
  return true;
}

}  // namespace

bool job_history::add(const past_recovery& recovery) {
  if (!insert_by_generation(recoveries, recovery)) return false;
  ++num_recoveries;
  return true;
}

void job_history::learn(const job_history& other) {
  for (const auto& one : other.recoveries) insert_by_generation(recoveries, one);
  num_recoveries =
      std::max({num_recoveries, other.num_recoveries, static_cast<std::uint64_t>(recoveries.size())});
  if (other.started_ms != 0)
    started_ms = started_ms == 0 ? other.started_ms : std::min(started_ms, other.started_ms);
}

bool job_history::is_ahead_of(const job_history& other) const {
  bool is_older = started_ms != 0 && (other.started_ms == 0 || started_ms < other.started_ms);
  return is_older || num_recoveries > other.num_recoveries;
}

}  // namespace troupe::actors::messages
