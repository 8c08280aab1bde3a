#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "troupe/collective/communicator.hpp"
#include "troupe/collective/roster.hpp"
#include "troupe/collective/store.hpp"

namespace troupe {

/// Makes the groups of one process, so that all members give the same group the same name without asking each
/// other, and ends them when a member is lost.
///
/// A name tells who the members are, of which incarnation, and the how-manieth group of these it is: each
/// process counts. So what a lost process left in the store is never taken for its successor's, and a group
/// of the survivors needs no one else. Members form the groups of one list of ranks in the same order.
/// Thread-safe, and calls wait for each other.
class group_former {
 public:
  using maker = std::function<std::unique_ptr<communicator>(const group_description&, store&,
                                                            const communicator_options&)>;

  /// `members` and `keys` outlive it; `make` makes one member's end of a group.
  group_former(int rank, roster& members, store& keys, maker make);
  ~group_former();
  group_former(const group_former&) = delete;
  group_former& operator=(const group_former&) = delete;

  /// The next group of `ranks` (distinct, this process among them, members in this order), which is called
  /// `name`. Waits for the members; for one that was lost, until its rank is started again. Throws
  /// collective_error when a member is lost or does not come in time, and job_failed.
  std::shared_ptr<communicator> form(const std::string& name, const std::vector<int>& ranks,
                                     const communicator_options& options);

  /// The name of a group of these ranks that has no other: "{0,2,4}", longer lists with a hash.
  static std::string name_of(const std::vector<int>& ranks);

 private:
  /// A group and what it began with, which it may go on to use.
  struct formed;

  std::vector<std::uint32_t> await_members(const std::string& name, const std::vector<int>& ranks,
                                           std::chrono::milliseconds timeout);
  void doubt_lost_members();
  void on_loss(int rank, const std::string& cause);

  int rank_;
  roster& members_;
  store& keys_;
  maker make_;
  std::mutex forming_;
  std::map<std::string, int> counts_;  ///< by name and incarnations
  std::mutex listing_;                 ///< guards the next
  std::vector<std::weak_ptr<formed>> all_;
};

}  // namespace troupe
