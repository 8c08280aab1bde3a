#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/group/process_table.hpp"
#include "troupe/collective/group/store.hpp"

namespace troupe {

/// Makes the groups of one process, and aborts them when a member is lost.
///
/// All members give a group the same unique name without communication. The name consists of the given name,
/// the incarnations of the members, and a count of the groups with this name and these incarnations. So the
/// keys that a lost process has put into the store are never used by its replacement, and survivors can make
/// a group without it. The condition is that members build the groups of one list of ranks in the same order.
/// Thread-safe; calls run one after the other.
class group_builder {
 public:
  using communicator_maker = std::function<std::unique_ptr<communicator>(const group_description&, store&,
                                                                         const communicator_options&)>;

  /// `members` and `keys` outlive it. make: makes this member's communicator of a group.
  group_builder(world_rank rank, process_table& members, store& keys, communicator_maker make);
  ~group_builder();
  group_builder(const group_builder&) = delete;
  group_builder& operator=(const group_builder&) = delete;

  /// Builds a group. ranks: of the members, in this order, distinct, this process among them. Blocks until
  /// all members build it; for a lost one, until its rank has a new process. Throws collective_error if a
  /// member is lost or does not come within options.timeout, and job_failed.
  std::shared_ptr<communicator> build(const std::string& name, const std::vector<world_rank>& ranks,
                                      const communicator_options& options);

  /// A name for a group of these ranks: "{0,2,4}"; of long lists, a hash.
  static std::string name_of(const std::vector<world_rank>& ranks);

 private:
  /// A communicator, and what it uses as long as it lives.
  struct built_group;

  std::vector<std::uint32_t> wait_for_members(const std::string& name, const std::vector<world_rank>& ranks,
                                              std::chrono::milliseconds timeout);
  void suspect_lost_members();
  void on_loss(std::optional<world_rank> rank, const std::string& cause);

  world_rank rank_;
  process_table& members_;
  store& keys_;
  communicator_maker make_;
  std::mutex building_;
  std::map<std::string, int> counts_;  ///< by name and incarnations
  std::mutex listing_;                 ///< guards the next
  std::vector<std::weak_ptr<built_group>> groups_;
};

}  // namespace troupe
