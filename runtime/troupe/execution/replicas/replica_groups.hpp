#pragma once
#include <atomic>
#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "troupe/execution/replicas/group_maker.hpp"
#include "troupe/execution/replicas/replica_group.hpp"

namespace troupe::execution {

/// The groups over which the replicas of a process's stages add up gradients, in one generation. A thread
/// makes them one after the other in the order of stages, so that processes that are members of several make
/// these in one order. Thread-safe.
class replica_groups {
 public:
  /// A stage of a slice, of which all replicas are members.
  struct key {
    int stage = 0;
    int slice = 0;
    auto operator<=>(const key&) const = default;
  };
  /// The rank of the process that hosts each replica: of those of which this process hosts one, and others
  /// do.
  using replica_ranks = std::map<key, std::vector<world_rank>>;
  /// A group cannot be made, or has failed. On any thread, but not after end().
  using failure_callback = std::function<void(const std::exception& cause)>;

  /// `job`: its number, which the groups' names hold.
  replica_groups(std::uint64_t generation, std::uint32_t job, replica_ranks ranks, group_maker make,
                 failure_callback on_failure);
  /// Ends the making of groups, and the calls in flight.
  ~replica_groups();
  replica_groups(const replica_groups&) = delete;
  replica_groups& operator=(const replica_groups&) = delete;

  /// Whether the replicas add up over a group.
  bool has(const key& wanted) const { return ranks_.contains(wanted); }
  /// `on_call_end` is called after each call of a group, on any thread, until end().
  void listen(const key& wanted, std::function<void()> on_call_end);
  /// A group that there is to be; null if it is not there after `most`.
  const replica_group* wait_for(const key& wanted, std::chrono::milliseconds most);
  /// A group of a device has failed.
  void report(const std::exception& cause) const;
  /// Makes no more, and aborts the groups: their calls end, and write to no tensor any more.
  void end();

 private:
  void make_all();
  void make_group(const key& wanted, const std::vector<world_rank>& of_replicas);
  void tell(const key& of_group);

  std::uint64_t generation_;
  std::uint32_t job_;
  replica_ranks ranks_;
  group_maker make_;
  failure_callback on_failure_;
  /// Groups may outlive this object, in devices.
  std::shared_ptr<std::atomic<bool>> has_ended_ = std::make_shared<std::atomic<bool>>(false);

  std::mutex telling_;  // guards the next one, and is held while one is called
  std::map<key, std::vector<std::function<void()>>> listeners_;

  std::mutex mutex_;  // guards the next one
  std::condition_variable made_;
  std::map<key, replica_group> groups_;  ///< stay where they are

  std::thread thread_;  // last: it uses the others
};

}  // namespace troupe::execution
