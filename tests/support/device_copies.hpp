#pragma once
#include <memory>

#include "troupe/collective/calls/backend.hpp"

namespace troupe::testing {

/// Makes a backend of GPU tensors usable with tensors in CPU memory: each call works on copies, which share
/// memory if the tensors of the call do. So the cases of all backends run over it unchanged.
class device_copies final : public collective::collective_backend {
 public:
  explicit device_copies(std::unique_ptr<collective::collective_backend> below) : below_(std::move(below)) {}

  std::string_view name() const override { return below_->name(); }
  collective::algorithm run(const collective::collective_operation& what, std::uint64_t sequence) override;
  void progress() override { below_->progress(); }
  void check_members() override { below_->check_members(); }
  void announce_sleep(int engine_event) override { below_->announce_sleep(engine_event); }
  void cancel_sleep() override { below_->cancel_sleep(); }
  void sleep(std::chrono::microseconds at_most) override { below_->sleep(at_most); }
  void wake() override { below_->wake(); }
  bool add_wake_sources(collective::wake_sources& sources) override {
    return below_->add_wake_sources(sources);
  }
  bool has_own_sleep() const override { return below_->has_own_sleep(); }
  bool aborts_at_once() const override { return below_->aborts_at_once(); }
  std::vector<collective::member_state> examine(std::uint64_t sequence) override {
    return below_->examine(sequence);
  }
  void abort(const collective_error& why) noexcept override { below_->abort(why); }

 private:
  std::unique_ptr<collective::collective_backend> below_;
};

}  // namespace troupe::testing
