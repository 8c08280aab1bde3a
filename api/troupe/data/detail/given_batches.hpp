#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "troupe/program/batch_source.hpp"

namespace troupe::detail {

/// Batches that the program gives step by step, kept until they are released. Thread-safe.
class given_batches : public batch_source {
 public:
  /// Keeps a copy, in CPU memory: the program may write to its tensors again.
  void put(std::uint64_t step, const batch& given);
  /// Batches of steps before this one are not needed again.
  void release_before(std::uint64_t step);
  std::size_t size_bytes() const;

  std::uint64_t num_steps_per_epoch() const override { return 1; }
  /// Throws bad_input if the batch was released.
  batch at(std::uint64_t step) override;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, batch> batches_;
  std::uint64_t released_before_ = 0;
};

}  // namespace troupe::detail
