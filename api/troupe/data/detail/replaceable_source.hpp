#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "troupe/program/batch_source.hpp"

namespace troupe::detail {

/// Gives the batches of another source, which may be replaced, so that a job needs one for any number of
/// calls. Thread-safe if the other one is.
class replaceable_source : public batch_source {
 public:
  explicit replaceable_source(std::shared_ptr<batch_source> first) : present_(std::move(first)) {}
  void replace(std::shared_ptr<batch_source> next) {
    std::lock_guard lock(mutex_);
    present_ = std::move(next);
  }
  std::uint64_t num_steps_per_epoch() const override { return present()->num_steps_per_epoch(); }
  batch at(std::uint64_t step) override { return present()->at(step); }

 private:
  std::shared_ptr<batch_source> present() const {
    std::lock_guard lock(mutex_);
    return present_;
  }

  mutable std::mutex mutex_;
  std::shared_ptr<batch_source> present_;
};

}  // namespace troupe::detail
