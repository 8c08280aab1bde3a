#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "troupe/collective/group.hpp"
#include "troupe/collective/group/store.hpp"
#include "troupe/collective/shm/peer_process.hpp"

namespace troupe {

/// Lets the members of a new group exchange what they need to connect, through a store. Waiting throws
/// collective_error: timed_out with the rank that did not come in time, lost_member with one that has ended.
class rendezvous {
 public:
  rendezvous(const group_description& group, store& keys, std::chrono::milliseconds timeout);

  const group_description& group() const { return group_; }
  member_index member() const { return group_.member; }
  world_rank rank_of(member_index member) const { return group_.rank_of(member); }
  /// The deadline of connecting. The second half of the time is for telling the others about a failure.
  std::chrono::steady_clock::time_point half_time() const { return deadline_ - timeout_ / 2; }
  /// From now on waiting fails when one of these processes ends. By member; null: not watched.
  void watch(std::vector<std::shared_ptr<peer_process>> peers) { peers_ = std::move(peers); }

  void put(const std::string& name, const std::string& value);
  /// Waits until member `from` has put this name, and returns its value.
  std::string get(const std::string& name, member_index from);
  /// Puts `own`, and returns the values of all members.
  std::vector<std::string> all_gather(const std::string& name, const std::string& own);

 private:
  std::string key(const std::string& name, member_index member) const;
  void throw_if_ended(const std::string& name) const;

  const group_description& group_;
  store& keys_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<std::shared_ptr<peer_process>> peers_;
};

/// What a member of a group tells the others about its process.
struct member_info {
  std::string host;  ///< kernel boot id, network and PID namespace, and user: equal for processes that
                     ///< can share memory
  std::uint64_t process = 0;
  std::string address;  ///< of its peer_connector
  std::string sizes;    ///< its network_sizes
  bool is_on_host_of(const member_info& other) const { return host == other.host; }
};

/// The host name of this process in member_info.
std::string this_host();
std::string to_string(const member_info& info);
/// Throws std::runtime_error if a text is malformed.
std::vector<member_info> parse_member_infos(const std::vector<std::string>& texts);

}  // namespace troupe
