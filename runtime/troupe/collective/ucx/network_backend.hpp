#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "troupe/collective/backend.hpp"
#include "troupe/collective/network/conversation.hpp"
#include "troupe/collective/ucx/network_context.hpp"
#include "troupe/collective/ucx/rendezvous.hpp"
#include "troupe/collective/ucx/ucx_exchange.hpp"
#include "troupe/transport/wakeup.hpp"

namespace troupe {

/// Members on several hosts, who exchange messages over the network.
class network_backend : public collective_backend {
 public:
  /// Returns when all are connected to all. Throws what rendezvous throws, and collective_error (transport)
  /// if members cannot reach each other. `over` outlives it.
  network_backend(rendezvous& at, network_context& over);
  ~network_backend() override;

  std::string_view name() const override { return "ucx"; }
  std::string_view algorithm_of(const collective_operation&) const override { return "network"; }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;
  void progress() override;
  void check_members() override;

  void announce_sleep() override { wakeup_.announce_sleep(); }
  void cancel_sleep() override { wakeup_.cancel_sleep(); }
  void sleep(std::chrono::microseconds at_most) override;
  void wake() override { wakeup_.wake(); }
  std::vector<member_state> examine(std::uint64_t sequence) override;
  void abort(const collective_error& why) noexcept override;

 protected:
  /// The call's algorithm.
  virtual algorithm chosen(const collective_operation& what, std::uint64_t sequence);
  /// Whether a call that runs cannot go on without `member`.
  virtual bool awaits(int member) const;
  network::conversation converse(const collective_operation& what, std::uint64_t sequence);
  const heard_of& heard(int member) const { return exchange_->heard(member); }
  const group_description& group() const { return group_; }

 private:
  last_words own_words() const;
  std::string doing_of(int member) const;
  void ask_everyone();
  void hear_out();
  [[noreturn]] void report_loss(int member) const;
  template <class Visit>
  void for_others(Visit visit) const {
    for (int i = 0; i < group_.size(); ++i)
      if (i != group_.member) visit(i, exchange_->heard(i));
  }

  group_description group_;
  const network_options& options_;
  wakeup wakeup_;
  std::unique_ptr<ucx_exchange> exchange_;  ///< none when the group has failed
  bool has_moved_ = false;          ///< bytes of a call that is not done, when they were looked at last
  std::optional<last_words> told_;  ///< of the failure, by another member

  struct running_call {
    const collective_operation* what;
    std::uint64_t sequence;
  };
  std::vector<running_call> running_;
};

}  // namespace troupe
