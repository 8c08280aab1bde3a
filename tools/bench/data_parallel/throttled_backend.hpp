#pragma once
#include <memory>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/collective/communicator/communicator.hpp"

namespace troupe {

/// Wraps another backend to simulate a slow link, for measurements and tests. Each member has a link of
/// `bytes_per_second` that carries one call after the other. A call ends no sooner than the link would have
/// moved the bytes that any algorithm must send at least:
/// - all_reduce: 2 (n-1)/n of the elements
/// - reduce_scatter, all_gather, gather, scatter and all_to_all: (n-1)/n of all parts
/// - broadcast, reduce, send and receive: all elements
///
/// The link starts when the call has ended below, so the time of the other backend is added. Waiting takes no
/// processor time.
class throttled_backend : public collective::collective_backend {
 public:
  /// n: members. Throws std::invalid_argument unless bytes_per_second > 0.
  throttled_backend(std::unique_ptr<collective::collective_backend> below, int num_members,
                    double bytes_per_second);

  std::string_view name() const override { return below_->name(); }
  troupe::device device() const override { return below_->device(); }
  bool has_fixed_tree() const override { return below_->has_fixed_tree(); }
  std::string_view algorithm_of(const collective::collective_operation& what) const override {
    return below_->algorithm_of(what);
  }
  collective::algorithm run(const collective::collective_operation& what, std::uint64_t sequence) override;
  void progress() override { below_->progress(); }
  void check_members() override { below_->check_members(); }
  void announce_sleep(int engine_event) override { below_->announce_sleep(engine_event); }
  void cancel_sleep() override { below_->cancel_sleep(); }
  void sleep(std::chrono::microseconds at_most) override;
  void wake() override { below_->wake(); }
  bool add_wake_sources(collective::wake_sources& sources) override;
  bool has_own_sleep() const override { return below_->has_own_sleep(); }
  bool aborts_at_once() const override { return below_->aborts_at_once(); }
  std::vector<collective::member_state> examine(std::uint64_t sequence) override {
    return below_->examine(sequence);
  }
  void abort(const collective_error& why) noexcept override { below_->abort(why); }
  tensor allocate(shape extents, dtype type) override { return below_->allocate(std::move(extents), type); }

 private:
  using clock = std::chrono::steady_clock;

  std::chrono::microseconds limited(std::chrono::microseconds at_most) const;

  std::unique_ptr<collective::collective_backend> below_;
  int num_members_;
  double bytes_per_second_;
  clock::time_point free_from_;  // when the link has moved all calls so far
};

/// For a group whose members have such a link each.
communicator_options over_link(int num_members, double bytes_per_second);

/// The bytes that the link of one member moves in a call.
double link_bytes(const collective::call_signature& signature, int num_members);

}  // namespace troupe
