#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/collective/calls/group.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/collective/shm/memory/peer_process.hpp"

namespace troupe::collective {

/// Lets the members of a new group exchange what they need to connect, through a store. Waiting throws
/// collective_error: timed_out with the rank that did not come in time, lost_member with one that has ended,
/// transport if one has put an obstacle.
class rendezvous {
 public:
  rendezvous(const group_description& group, store& keys, std::chrono::milliseconds timeout);

  const group_description& group() const { return group_; }
  member_index member() const { return group_.member; }
  world_rank rank_of(member_index member) const { return group_.rank_of(member); }
  /// The deadline of connecting. The second half of the time is for telling the others about a failure.
  std::chrono::steady_clock::time_point half_time() const { return deadline_ - timeout_ / 2; }
  /// Until waiting fails.
  std::chrono::steady_clock::duration time_left() const {
    return std::max(deadline_ - std::chrono::steady_clock::now(), std::chrono::steady_clock::duration(0));
  }
  /// From now on waiting fails when one of these processes ends. By member; null: not watched.
  void watch(std::vector<std::shared_ptr<peer_process>> peers) { peers_ = std::move(peers); }

  void put(const std::string& name, const std::string& value);
  /// Waits until member `from` has put this name, and returns its value.
  std::string get(const std::string& name, member_index from);
  /// Tells the members why the group cannot be made, and throws.
  [[noreturn]] void fail(const std::string& obstacle);
  /// What member `from` has put, or nothing.
  std::optional<std::string> find_now(const std::string& name, member_index from);
  [[noreturn]] void throw_late(const std::string& name, member_index from) const;
  /// Called now and then while this member waits for `from` without get(): throws as get() does.
  void check(const std::string& name, member_index from);
  /// Puts `own`, and returns the values of all members.
  std::vector<std::string> all_gather(const std::string& name, const std::string& own);

 private:
  std::string key(const std::string& name, member_index member) const;
  std::optional<std::string> find(const std::string& key, std::chrono::milliseconds timeout);
  std::string wait_for(const std::string& key, const std::string& name, member_index from);
  [[noreturn]] void throw_obstacle(const std::string& obstacle) const;
  void throw_if_ended(const std::string& name) const;
  void throw_if_late(const std::string& name, member_index from) const;
  friend class known_processes;

  const group_description& group_;
  store& keys_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<std::shared_ptr<peer_process>> peers_;
};

/// What a member of a group tells the others about its process.
struct member_info {
  std::string host;  ///< this_host() and the place of its peer_connector: equal for processes that can
                     ///< share memory
  std::uint64_t process = 0;
  std::string address;  ///< address of its peer_connector
  std::string sizes;    ///< its network_sizes, as text: all members must have the same
  bool is_on_host_of(const member_info& other) const { return host == other.host; }
};

/// What the processes of a job have told about themselves: each puts it once, and reads that of another one
/// before their first group that needs it. Thread-safe: a thread that waits for another process keeps no
/// other thread waiting.
class known_processes {
 public:
  /// By member of a group. `own` returns that of this process; if it is another one than before, it is put
  /// again. name: what is told, a "member info" or "network address".
  std::vector<std::string> texts_of(rendezvous& point, const std::string& name,
                                    const std::function<std::string()>& own);
  /// What a member has put last. After texts_of().
  std::string read_again(rendezvous& point, const std::string& name, member_index from);

 private:
  static std::string key_of(const rendezvous& point, const std::string& name, member_index member);
  std::string tell(rendezvous& point, const std::string& key, const std::function<std::string()>& own);
  std::optional<std::string> find(const std::string& key);
  void remember(const std::string& key, const std::string& text);
  std::string remember_first(const std::string& key, const std::string& text);

  std::mutex telling_;                        // so that the newest text is put last
  std::mutex mutex_;                          // guards the next, and is not held while a store is asked
  std::map<std::string, std::string> known_;  ///< values that the store had; key: the store's key
};

/// The host name of this process in member_info.
std::string this_host();
std::string to_string(const member_info& info);
/// Throws std::runtime_error if a text is malformed.
member_info parse_member_info(const std::string& text);

}  // namespace troupe::collective
