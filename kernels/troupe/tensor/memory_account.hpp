#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "troupe/tensor/device.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe {

class tensor;
struct account_counters;

/// What memory of an account is for. The first are those of memory_category, `other` as `working`; a scope
/// says what else memory of no category is for.
enum class memory_use : std::uint8_t {
  working,  ///< temporary results of operations, and gradients on their way
  parameters,
  gradients,
  optimizer,
  activations,
  messages,  ///< tensors and samples that have arrived and are not in use yet
  snapshots  ///< copies of the state
};
constexpr std::size_t num_memory_uses = 7;
std::string_view to_string(memory_use use);

/// What an account holds, in bytes of allocated blocks. Peaks count from its beginning. What the device
/// computes with is told apart from the copies of its state: these could as well be in other memory.
struct account_statistics {
  std::size_t current = 0;                   ///< of all uses but snapshots
  std::size_t peak = 0;                      ///< maximum of `current`, at most the sum of the uses' peaks
  std::size_t by_use[num_memory_uses] = {};  ///< held now, by use
  std::size_t peak_by_use[num_memory_uses] = {};  ///< each one's own peak
  bool operator==(const account_statistics&) const = default;
};

/// Who is charged for memory, such as a logical device of a job. A handle: copies are the same account.
/// Blocks remember their account and debit it when they are freed, on whichever thread, also after the last
/// handle is gone. Thread-safe.
class memory_account {
 public:
  /// No account.
  memory_account() = default;
  static memory_account make();
  memory_account(const memory_account& other);
  memory_account(memory_account&& other) noexcept : counters_(std::exchange(other.counters_, nullptr)) {}
  memory_account& operator=(memory_account other) noexcept {
    std::swap(counters_, other.counters_);
    return *this;
  }
  ~memory_account();

  explicit operator bool() const { return counters_ != nullptr; }
  /// From now on allocate() throws bad_input for this account where it would come to hold more than `bytes`
  /// there, copies of the state (memory_use::snapshots) apart. 0: no limit.
  void set_limit(device::kind where, std::size_t bytes) const;
  /// From now on peaks count from what is held now.
  void reset_peak() const;
  /// Of what is in the memory of the CPU, or of GPUs: these are told apart. Zeros without an account. Numbers
  /// of one moment only while no other thread allocates for it.
  account_statistics statistics(device::kind where = device::kind::cpu) const;

 private:
  friend class account_scope;
  account_counters* counters_ = nullptr;
};

/// While it lives, memory that this thread allocates is charged to the account: under its memory_category, or
/// for `other` under `use`.
class account_scope {
 public:
  /// `account` must outlive the scope.
  explicit account_scope(const memory_account& account, memory_use use = memory_use::working);
  ~account_scope();
  account_scope(const account_scope&) = delete;
  account_scope& operator=(const account_scope&) = delete;

 private:
  account_counters* outer_;
  memory_use outer_use_;
  account_counters* owned_ = nullptr;  ///< this thread became its owner with the scope
};

/// Charges the tensor's memory to this thread's account, whoever was charged before: all of the memory that
/// it has a part of. Does nothing for memory that is not from allocate(), and on a thread without an account.
void charge_here(const tensor& value, memory_use use);

}  // namespace troupe
