#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/collective/group/process_table.hpp"
#include "troupe/collective/rendezvous/store.hpp"

namespace troupe::collective {

/// Makes the groups of one process. A group belongs to the generation in which it was built: a fence aborts
/// all groups, whoever their members are.
///
/// All members give a group the same unique name without communication. The name consists of the generation
/// (but for the first one), the given name, and a count of the groups with this name in this generation:
/// "2/{0,2}#3". So the keys that a lost process has put into the store are never used by its replacement, and
/// survivors can make a group without it. The condition is that members build the groups of one list of ranks
/// in the same order. Thread-safe; calls run one after the other.
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
  /// all members build it; for a lost one, until its rank has a new process. Throws collective_error if the
  /// generation ends meanwhile or a member does not come within options.timeout, and job_failed.
  std::shared_ptr<communicator> build(const std::string& name, const std::vector<world_rank>& ranks,
                                      const communicator_options& options);

  /// Builds a group of one generation, for a job whose devices run in it; may run beside build(). `name`:
  /// unique in the generation, and no list of ranks. `check`: called now and then while others are waited
  /// for, and as long as the group lives; what it throws ends the group. Throws collective_error at once if
  /// the generation has ended or a member is lost.
  std::shared_ptr<communicator> build_in(std::uint64_t generation, const std::string& name,
                                         const std::vector<world_rank>& ranks,
                                         const communicator_options& options, std::function<void()> check);

  /// A name for a group of these ranks: "{0,2,4}"; of long lists, a hash.
  static std::string name_of(const std::vector<world_rank>& ranks);

 private:
  /// A communicator, and what it uses as long as it lives.
  struct built_group;

  std::shared_ptr<communicator> build_group(group_description description,
                                            const communicator_options& options, std::function<void()> check);
  std::vector<std::uint32_t> wait_for_members(const std::string& name, const std::vector<world_rank>& ranks,
                                              std::chrono::milliseconds timeout);
  void wait_for_fence_of_lost_members(std::chrono::milliseconds timeout);
  std::vector<std::shared_ptr<built_group>> living_groups();
  void on_end(const groups_end& why);

  world_rank rank_;
  process_table& members_;
  store& keys_;
  communicator_maker make_;
  std::mutex building_;                // guards the next one, and is held by build()
  std::map<std::string, int> counts_;  ///< by name with its generation
  std::mutex listing_;                 ///< guards groups_
  std::vector<std::weak_ptr<built_group>> groups_;
};

}  // namespace troupe::collective
