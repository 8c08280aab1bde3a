#include "bench/measure/busy_loops.hpp"

namespace troupe::bench {

busy_loops::busy_loops(int count) {
  for (int i = 0; i < count; ++i)
    threads_.emplace_back([](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
      }
    });
}

}  // namespace troupe::bench
