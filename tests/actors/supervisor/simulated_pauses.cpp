// simulated_job: users who pause the job and take it further.
#include <algorithm>
#include <array>

#include "simulated_process.hpp"

namespace troupe::testing {

void simulated_job::request_pause_anywhere(actors::job::pause_request request) {
  auto* process = present(static_cast<int>(random_() % static_cast<unsigned>(options_.world_size)));
  if (!process) return;
  paused_for_ = 0;
  caf::anon_send(process->supervisor, actors::messages::request_pause{request});
}

void simulated_job::maybe_request_pause() {
  if (pause_requests_left_ == 0 || random_() % 100 != 0) return;
  --pause_requests_left_;
  actors::job::pause_request request;
  request.command = std::array{actors::job::pause_command::pause, actors::job::pause_command::resume,
                               actors::job::pause_command::step}[random_() % 3];
  request.unit = static_cast<step_unit>(random_() % 3);
  request.count = 1 + random_() % 4;
  request_pause_anywhere(request);
}

/// A job that stands for long is let go on, or taken further.
void simulated_job::end_long_pause() {
  constexpr int long_pause = 60;  // 3 s
  auto is_paused = [](const auto& process) { return process->alive && process->pause->get().is_paused; };
  if (std::ranges::none_of(processes_, is_paused) || ++paused_for_ < long_pause) return;
  if (pause_requests_left_ > 0 && random_() % 2 == 0) {
    --pause_requests_left_;
    return request_pause_anywhere(
        {0, actors::job::pause_command::step, static_cast<step_unit>(random_() % 3), 1});
  }
  request_pause_anywhere({0, actors::job::pause_command::resume});
}

}  // namespace troupe::testing
