#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "troupe/inspector/orders/control_order.hpp"
#include "troupe/inspector/orders/order_outcome.hpp"
#include "troupe/inspector/orders/order_target.hpp"

namespace troupe {

/// An order that was taken and has no outcome yet.
struct open_order {
  std::string id;  ///< unique in the job
  control_order order;
  order_target target;
  bool is_passed = false;  ///< on to who carries it out
  std::optional<std::uint32_t> starts_before =
      {};  ///< of an actor that was told to end: how often it was started
};

/// The orders on their way from the server's thread to the inspector's actor, and those that it has not ended
/// yet: an inspector that is started again finds them here. Thread-safe.
class open_orders {
 public:
  /// Further orders are refused until some of these have ended.
  static constexpr std::size_t max_open = 64;
  static constexpr std::size_t max_ended = 64;

  /// `on_end`: called with each order that ends, on the thread that ends it; must not block.
  explicit open_orders(std::function<void(const open_order&, const order_outcome&)> on_end = {})
      : on_end_(std::move(on_end)) {}

  enum class posted : std::uint8_t { taken, full, nobody };
  /// nobody: no inspector runs that would take it.
  posted post(open_order order);
  /// In the order in which they came.
  std::vector<open_order> all() const;
  /// It was passed on.
  void pass(const std::string& id, std::optional<std::uint32_t> starts_before = {});
  /// It is open no longer. None: it was not open.
  std::optional<ended_order> end(const std::string& id, const order_outcome& outcome);
  /// An order of the process that this one has replaced has an outcome.
  void add_ended(ended_order one);
  /// What /api/v1/orders shows: the newest that have ended, max_ended at most, and then those that are open.
  nlohmann::ordered_json rows() const;

  /// Called after each post, on its thread; null: no inspector runs. When this returns, the earlier one is
  /// not running.
  void on_post(std::function<void()> call);

 private:
  void keep(ended_order one);

  const std::function<void(const open_order&, const order_outcome&)> on_end_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<open_order> orders_;
  std::deque<ended_order> ended_;

  std::mutex calling_;
  std::function<void()> call_;  ///< guarded by calling_
};

/// Ends an order of the job and tells those who watch. Nothing happens if it is not open.
void end_order(inspected_job& job, const std::string& id, const order_outcome& outcome);

/// Of an order that is open when the job ends.
order_outcome outcome_at_end(const open_order& order);

}  // namespace troupe
