#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "troupe/shared_memory/shared_heap.hpp"

namespace troupe::collective {

class peer_process;

/// The memory of one group in a group_memory, for one member: which members are there, and their control
/// block. Zero at first.
class group_area {
 public:
  group_area(std::shared_ptr<shared_memory::mapping> memory, std::size_t offset, int num_members, int member);
  /// The member leaves.
  ~group_area();
  group_area(const group_area&) = delete;
  group_area& operator=(const group_area&) = delete;

  static std::size_t size_bytes(int num_members);
  std::byte* control_block() const;

  void arrive();
  bool has_arrived(int member) const;
  /// All members have arrived. Without this call the member gives up when it leaves.
  void begin() { has_begun_ = true; }
  bool has_given_up(int member) const;
  /// Changes when a member arrives or leaves, and then wakes who waits for it with futex_wait().
  std::atomic<std::uint32_t>& changes() const;

 private:
  void set_state(std::uint32_t next);

  std::shared_ptr<shared_memory::mapping> mapping_;
  std::byte* memory_;
  int num_members_, member_;
  bool has_begun_ = false;
};

/// Memory of one process, its owner, in which groups on its host begin: the other processes map it once, so
/// the members of a group find each other there without a message. A directory names the groups that are
/// about to begin. Areas take memory when they are used; one that all members have left is used again.
/// Thread-safe.
class group_memory {
 public:
  group_memory();

  /// For the other processes: attached_group_memory maps it.
  int descriptor() const { return segment_->fd.get(); }

  /// Adds a group, under a number that no other one has. peers: by member, null for this process. Throws
  /// system_failure.
  std::unique_ptr<group_area> add(std::uint64_t number,
                                  const std::vector<std::shared_ptr<peer_process>>& peers, int member);
  /// The group has begun, or will not: it is not found any more.
  void remove(std::uint64_t number);

 private:
  struct used_area {
    std::size_t offset, size;
    std::vector<std::shared_ptr<peer_process>> peers;
  };
  bool is_free(const used_area& area) const;
  void take_back_free();
  std::size_t allocate(std::size_t size);

  std::shared_ptr<shared_memory::shared_segment> segment_;
  std::shared_ptr<shared_memory::mapping> memory_;
  std::mutex mutex_;  // guards the rest
  std::vector<used_area> used_;
  std::multimap<std::size_t, std::size_t> free_;  ///< free ranges: size and offset, in bytes
  std::size_t end_;                               ///< offset behind the last area
};

/// Another process's group_memory.
class attached_group_memory {
 public:
  /// Throws system_failure, and std::runtime_error if it is no group_memory.
  explicit attached_group_memory(int descriptor);

  /// The area of a group; null if it is not in the directory.
  std::unique_ptr<group_area> find(std::uint64_t number, int num_members, int member) const;
  /// Changes when a group is added, and then wakes who waits for it with futex_wait().
  std::atomic<std::uint32_t>& changes() const;

 private:
  std::shared_ptr<shared_memory::mapping> memory_;
};

}  // namespace troupe::collective
