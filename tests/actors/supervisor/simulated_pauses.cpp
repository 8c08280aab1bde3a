// simulated_job: users who pause the job and take it further.
#include <algorithm>
#include <array>

#include "simulated_process.hpp"

namespace troupe::testing {

void simulated_job::order_pause_anywhere(pause_request order) {
  auto* process = present(static_cast<int>(random_() % static_cast<unsigned>(options_.world_size)));
  if (!process) return;
  paused_for_ = 0;
  caf::anon_send(process->supervisor, order_pause{order});
}

void simulated_job::maybe_order_pause() {
  if (pause_orders_left_ == 0 || random_() % 100 != 0) return;
  --pause_orders_left_;
  pause_request order;
  order.order = std::array{pause_order::pause, pause_order::resume, pause_order::step}[random_() % 3];
  order.unit = static_cast<step_unit>(random_() % 3);
  order.count = 1 + random_() % 4;
  order_pause_anywhere(order);
}

/// A job that stands for long is let go on, or taken further.
void simulated_job::end_long_pause() {
  constexpr int long_pause = 60;  // 3 s
  auto is_paused = [](const auto& process) { return process->alive && process->pause->get().is_paused; };
  if (std::ranges::none_of(processes_, is_paused) || ++paused_for_ < long_pause) return;
  if (pause_orders_left_ > 0 && random_() % 2 == 0) {
    --pause_orders_left_;
    return order_pause_anywhere({0, pause_order::step, static_cast<step_unit>(random_() % 3), 1});
  }
  order_pause_anywhere({0, pause_order::resume});
}

}  // namespace troupe::testing
