#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "troupe/actor/actor_counters.hpp"
#include "troupe/messages/inspector.hpp"
#include "troupe/supervisor/state/supervision_tree.hpp"

namespace troupe::actors::supervisor {

/// Which children a supervisor has had, how often it has started each, why each failed last,
/// and what each has done. Those that
/// have ended stay: there are as many entries as devices, stages and other roles.
class child_ledger {
 public:
  /// `counters`: null if the child counts nothing.
  void started(const child_id& one, std::shared_ptr<const actor::actor_counters> counters) {
    auto& entry = entries_[one];
    if (entry.counters) add_totals(entry.earlier, entry.counters->read());
    entry.counters = std::move(counters);
    entry.is_running = true;
    ++entry.starts;
  }
  void ended(const child_id& one) { entries_[one].is_running = false; }
  void failed(const child_id& one, const std::string& reason) { entries_[one].reason = reason; }

  std::uint32_t starts_of(const child_id& one) const {
    auto found = entries_.find(one);
    return found == entries_.end() ? 0 : found->second.starts;
  }
  std::vector<messages::child_report> report() const {
    std::vector<messages::child_report> all;
    for (const auto& [one, entry] : entries_)
      all.push_back({one, entry.is_running, entry.starts, entry.reason, entry.counts()});
    return all;
  }

 private:
  struct entry {
    bool is_running = false;
    std::uint32_t starts = 0;
    std::string reason;
    std::shared_ptr<const actor::actor_counters> counters;  ///< counters of the child's newest start
    actor::actor_counts earlier;                            ///< totals of its earlier starts

    actor::actor_counts counts() const {
      auto all = counters ? counters->read() : actor::actor_counts();
      add_totals(all, earlier);
      return all;
    }
  };
  std::map<child_id, entry> entries_;
};

}  // namespace troupe::actors::supervisor
