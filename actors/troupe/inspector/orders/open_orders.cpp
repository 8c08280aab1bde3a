#include "troupe/inspector/orders/open_orders.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "troupe/inspector/views/views.hpp"

namespace troupe {

using json = nlohmann::ordered_json;

open_orders::posted open_orders::post(open_order order) {
  std::lock_guard calling(calling_);
  if (!call_) return posted::nobody;
  {
    std::lock_guard lock(mutex_);
    if (orders_.size() >= max_open) return posted::full;
    orders_.push_back(std::move(order));
  }
  call_();
  return posted::taken;
}

std::vector<open_order> open_orders::all() const {
  std::lock_guard lock(mutex_);
  return orders_;
}

void open_orders::pass(const std::string& id, std::optional<std::uint32_t> starts_before) {
  std::lock_guard lock(mutex_);
  for (auto& one : orders_)
    if (one.id == id) {
      one.is_passed = true;
      if (starts_before) one.starts_before = starts_before;
    }
}

std::optional<ended_order> open_orders::end(const std::string& id, const order_outcome& outcome) {
  open_order open;
  ended_order ended;
  {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find(orders_, id, &open_order::id);
    if (found == orders_.end()) return {};
    open = std::move(*found);
    orders_.erase(found);
    ended = {open.id,
             std::string(to_string(open.order.action)),
             to_string(open.target),
             open.target.rank,
             outcome,
             unix_now_ms()};
    keep(ended);
  }
  if (on_end_) on_end_(open, outcome);
  return ended;
}

void open_orders::add_ended(ended_order one) {
  std::lock_guard lock(mutex_);
  keep(std::move(one));
}

void open_orders::keep(ended_order one) {
  ended_.push_back(std::move(one));
  if (ended_.size() > max_ended) ended_.pop_front();
}

json open_orders::rows() const {
  std::lock_guard lock(mutex_);
  auto rows = json::array();
  for (const auto& one : ended_) rows.push_back(order_json(one));
  for (const auto& one : orders_)
    rows.push_back({{"id", one.id},
                    {"action", to_string(one.order.action)},
                    {"target", to_string(one.target)},
                    {"rank", one.target.rank < 0 ? json() : json(one.target.rank)},
                    {"outcome", nullptr},
                    {"text", nullptr},
                    {"at_ms", nullptr}});
  return rows;
}

void open_orders::on_post(std::function<void()> call) {
  std::lock_guard calling(calling_);
  call_ = std::move(call);
}

void end_order(inspected_job& job, const std::string& id, const order_outcome& outcome) {
  if (auto ended = job.orders()->end(id, outcome))
    job.events()->append("control", text_of(order_json(*ended)));
}

order_outcome outcome_at_end(const open_order& order) {
  return {order_result::lost,
          order.is_passed ? "the job has ended while the order was being carried out"
                          : "the job has ended before the order was carried out",
          {}};
}

}  // namespace troupe
