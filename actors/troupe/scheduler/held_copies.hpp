#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "troupe/recovery/inventory.hpp"
#include "troupe/recovery/restore_plan.hpp"
#include "troupe/recovery/retention.hpp"

namespace troupe {

/// Who holds which copies of the stages' states, as far as the scheduler was told, and so which step no
/// single lost process can take away. What one more copy costs does not depend on how many came before.
class held_copies {
 public:
  /// All that a node holds, in place of what was known of it.
  void set(const node_inventory& inventory);
  /// A node holds one more. Copies older than the newest committed step are forgotten.
  void add(int rank, const held_part& part, std::uint32_t num_stages);
  /// Everyone goes back to what `plan` says: newer copies are of a future that does not come.
  void roll_back(const restore_plan& plan);
  std::vector<node_inventory> inventories() const;
  std::uint64_t committed_step(std::uint32_t num_stages) const;

  /// Copies of `step` are to be made.
  void order(std::uint64_t step) { ordered_.insert(step); }
  /// Steps whose copies are to be made or under way, above the newest committed one.
  std::size_t num_uncommitted(std::uint32_t num_stages);

 private:
  void count_anew();
  void forget_older(std::uint64_t committed);

  std::map<int, node_inventory> nodes_;
  std::map<std::uint64_t, step_holders> steps_;  ///< what the nodes' parts come to
  /// Of `steps_`; none: to be looked for.
  mutable std::optional<std::uint64_t> committed_;
  std::set<std::uint64_t> ordered_;
};

}  // namespace troupe
