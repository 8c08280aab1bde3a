#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "troupe/collective/group.hpp"
#include "troupe/collective/store.hpp"
#include "troupe/collective/ucx/host_peer.hpp"

namespace troupe {

/// How the members of a new group tell each other what they need to begin, through a store. Waiting throws
/// collective_error: timed_out with the ranks that did not come in time, lost_member with one that ended.
class rendezvous {
 public:
  rendezvous(const group_description& group, store& place, std::chrono::milliseconds timeout);

  const group_description& group() const { return group_; }
  int member() const { return group_.member; }
  int rank_of(int member) const { return group_.ranks[static_cast<std::size_t>(member)]; }
  /// Until when connections are waited for: the rest is for telling the others.
  std::chrono::steady_clock::time_point half_time() const { return deadline_ - timeout_ / 2; }
  /// From now on their end is noticed while this waits. By member; null or none: not watched.
  void watch(std::vector<std::shared_ptr<host_peer>> peers) { peers_ = std::move(peers); }

  void put(const std::string& what, const std::string& text);
  /// Waits for what `from` has put.
  std::string get(const std::string& what, int from);
  /// Puts, and waits for what every member has put.
  std::vector<std::string> all_gather(const std::string& what, const std::string& own);

 private:
  std::string key(const std::string& what, int member) const;
  void throw_if_ended(const std::string& what) const;

  const group_description& group_;
  store& place_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<std::shared_ptr<host_peer>> peers_;
};

}  // namespace troupe
