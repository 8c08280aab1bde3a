#pragma once
#include <atomic>
#include <chrono>
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
  /// By stage, the rank of the process that hosts each replica: of stages of which this process hosts one,
  /// and others do.
  using replica_ranks = std::map<int, std::vector<world_rank>>;
  /// A group cannot be made, or has failed. On any thread, but not after end().
  using failure_callback = std::function<void(const std::exception& cause)>;

  /// `job`: its number, which the groups' names hold.
  replica_groups(std::uint64_t generation, std::uint32_t job, replica_ranks ranks, group_maker make,
                 failure_callback on_failure);
  /// Ends the making of groups, and the calls in flight.
  ~replica_groups();
  replica_groups(const replica_groups&) = delete;
  replica_groups& operator=(const replica_groups&) = delete;

  /// Whether the replicas of a stage add up over a group.
  bool has(int stage) const { return ranks_.contains(stage); }
  /// `on_call_end` is called after each call of a stage's group, on any thread, until end().
  void listen(int stage, std::function<void()> on_call_end);
  /// Of a stage that has one; null if it is not there after `most`.
  const replica_group* wait_for(int stage, std::chrono::milliseconds most);
  /// A group of a device has failed.
  void report(const std::exception& cause) const;
  /// Makes no more, and aborts the groups: their calls end, and write to no tensor any more.
  void end();

 private:
  void make_all();
  void make_group(int stage, const std::vector<world_rank>& of_replicas);
  void tell(int stage);

  std::uint64_t generation_;
  std::uint32_t job_;
  replica_ranks ranks_;
  group_maker make_;
  failure_callback on_failure_;
  /// Groups may outlive this object, in devices.
  std::shared_ptr<std::atomic<bool>> has_ended_ = std::make_shared<std::atomic<bool>>(false);

  std::mutex telling_;  // guards the next one, and is held while one is called
  std::map<int, std::vector<std::function<void()>>> listeners_;

  std::mutex mutex_;  // guards the next one
  std::condition_variable made_;
  std::map<int, replica_group> groups_;  ///< by stage; stay where they are

  std::thread thread_;  // last: it uses the others
};

}  // namespace troupe::execution
