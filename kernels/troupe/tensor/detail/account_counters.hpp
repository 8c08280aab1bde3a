#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "troupe/tensor/memory_account.hpp"

namespace troupe {

/// The numbers of a memory_account. Lives while a handle or a block refers to it.
///
/// A scope makes its thread the account's owner, unless another thread is. The owner changes numbers of its
/// own without atomic additions, which would cost as much as the allocation of a cached block; all other
/// threads add to the second ones.
struct alignas(64) account_counters {
  struct number {
    std::atomic<std::int64_t> of_owner = 0, of_others = 0;
    void add(std::int64_t change, bool is_owner) {
      if (is_owner)
        of_owner.store(of_owner.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
      else
        of_others.fetch_add(change, std::memory_order_relaxed);
    }
    std::size_t read() const {
      auto sum = of_owner.load(std::memory_order_relaxed) + of_others.load(std::memory_order_relaxed);
      return sum < 0 ? 0 : static_cast<std::size_t>(sum);  // while another thread changes both
    }
  };
  struct counter {
    number held;
    std::atomic<std::size_t> peak = 0;
    void add(std::size_t size_bytes, bool is_owner);
    void subtract(std::size_t size_bytes, bool is_owner) {
      held.add(-static_cast<std::int64_t>(size_bytes), is_owner);
    }
  };
  struct counters_of_place {
    counter whole;
    counter uses[num_memory_uses];
    std::atomic<std::size_t> limit = 0;  ///< 0: none
    counter& of(memory_use use) { return uses[static_cast<std::size_t>(use)]; }
  };
  counters_of_place on_cpu, on_gpus;
  counters_of_place& on(device::kind where) { return where == device::kind::cpu ? on_cpu : on_gpus; }
  std::atomic<const void*> owner = nullptr;  ///< address of the thread's account_of_thread

  /// Bytes of a new block of the account, or one that is none of its blocks any more.
  void charge(std::size_t size_bytes, device::kind where, memory_use use);
  void debit(std::size_t size_bytes, device::kind where, memory_use use);
  bool is_owned_here() const;

  void add_handle() { num_handles_.fetch_add(1, std::memory_order_relaxed); }
  void remove_handle();

 private:
  static constexpr std::int64_t has_handles = std::int64_t{1} << 62;

  std::atomic<std::int64_t> num_handles_ = 0;
  std::atomic<std::int64_t> blocks_of_owner_ = 0;
  /// Blocks that others than the owner charged, less those that they debited; with `has_handles` until the
  /// last handle is gone, and with the owner's blocks afterwards. 0: nothing refers to this.
  std::atomic<std::int64_t> references_ = has_handles;
};

/// This thread's account, and what memory of no category is for.
struct account_of_thread {
  account_counters* charged = nullptr;
  memory_use use = memory_use::working;
};
account_of_thread& this_account();

/// Throws bad_input if this thread's account would come to hold more than its limit with a block of that
/// size.
void require_within_limit(std::size_t size_bytes, device where, memory_category category);

/// Who is charged for a block. Threads that share the block may change it at once.
class block_charge {
 public:
  /// Charges this thread's account.
  block_charge(std::size_t size_bytes, device::kind where, memory_category category);
  void debit(std::size_t size_bytes);
  /// From `working` to what the category means, within its account.
  void set_category(std::size_t size_bytes, memory_category category);
  /// To this thread's account, if it has one. Copies of the state stay what they are within their account.
  void move_here(std::size_t size_bytes);

 private:
  /// False: another thread has changed it before.
  bool change(std::uintptr_t before, std::uintptr_t after, std::size_t block_size);

  /// The account, and where the block is and for what in the low bits, which its alignment leaves free.
  std::uintptr_t charged_ = 0;
};

}  // namespace troupe
