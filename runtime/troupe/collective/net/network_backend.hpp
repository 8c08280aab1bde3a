#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "troupe/collective/calls/backend.hpp"
#include "troupe/collective/group/rendezvous.hpp"
#include "troupe/collective/net/exchange/network_options.hpp"
#include "troupe/collective/net/exchange/ucx_exchange.hpp"
#include "troupe/collective/net/net_call.hpp"
#include "troupe/ucx/wakeup.hpp"

namespace troupe::collective {

struct ucx_group_resources;

/// The calls of a group whose members exchange messages over the network.
class network_backend : public collective_backend {
 public:
  /// Returns when all members have made it. Throws what rendezvous throws, collective_error (transport) that
  /// names the members that cannot reach each other, and the error of a member that has given up meanwhile.
  network_backend(rendezvous& point, ucx_group_resources& resources);
  ~network_backend() override;

  std::string_view name() const override { return "ucx"; }
  bool has_fixed_tree() const override { return true; }
  std::string_view algorithm_of(const collective_operation&) const override { return "network"; }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;
  void progress() override;
  void check_members() override;

  void announce_sleep(int engine_event) override;
  void cancel_sleep() override;
  void sleep(std::chrono::microseconds at_most) override;
  bool add_wake_sources(wake_sources& sources) override;
  void wake() override;
  std::vector<member_state> examine(std::uint64_t sequence) override;
  void abort(const collective_error& why) noexcept override;

 protected:
  /// The call's algorithm.
  virtual algorithm make_algorithm(const collective_operation& what, std::uint64_t sequence);
  /// Whether a running call waits for `member`.
  virtual bool waits_for_member(int member) const;
  net::net_call make_net_call(const collective_operation& what, std::uint64_t sequence);
  peer_status status_of(int member) const { return exchange_->status_of(member); }
  const group_description& group() const { return group_; }

 private:
  failure_report own_report() const;
  std::string activity_of(int member) const;
  void request_reports();
  template <class Condition>
  void progress_until(std::chrono::steady_clock::time_point deadline, Condition is_done);
  [[noreturn]] void throw_lost(int member) const;
  template <class Visit>
  void for_others(Visit visit) const {
    for (int i = 0; i < group_.size(); ++i)
      if (i != group_.member) visit(i, exchange_->status_of(i));
  }

  group_description group_;
  const network_options& options_;
  ucx::wakeup wakeup_;
  std::atomic<int> engine_event_ = no_event;
  std::unique_ptr<ucx_exchange> exchange_;  ///< null when the group has failed
  bool has_moved_ = false;                  ///< whether the last progress() did anything

  struct running_call {
    const collective_operation* what;
    std::uint64_t sequence;
  };
  std::vector<running_call> running_;
};

}  // namespace troupe::collective
