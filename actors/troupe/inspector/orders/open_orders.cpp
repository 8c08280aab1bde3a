#include "troupe/inspector/orders/open_orders.hpp"

#include <algorithm>

namespace troupe {

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

void open_orders::end(const std::string& id, const order_outcome& outcome) {
  std::optional<open_order> ended;
  {
    std::lock_guard lock(mutex_);
    auto found = std::ranges::find(orders_, id, &open_order::id);
    if (found == orders_.end()) return;
    ended = std::move(*found);
    orders_.erase(found);
  }
  if (on_end_) on_end_(*ended, outcome);
}

void open_orders::on_post(std::function<void()> call) {
  std::lock_guard calling(calling_);
  call_ = std::move(call);
}

}  // namespace troupe
