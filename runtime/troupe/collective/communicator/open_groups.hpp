#pragma once
#include <mutex>
#include <set>
#include <vector>

#include "troupe/collective/diagnostics/collective_position.hpp"

namespace troupe {
class communicator;
}  // namespace troupe

namespace troupe::collective {

/// The groups of a process that exist, for those who watch it. Thread-safe: a group that ends waits for a
/// reader, which takes some microseconds a group.
class open_groups {
 public:
  void add(const communicator& begun);
  void remove(const communicator& ended);
  /// Where this process is in each of them.
  std::vector<collective_position> positions() const;

 private:
  mutable std::mutex mutex_;
  std::set<const communicator*> groups_;
};

}  // namespace troupe::collective
