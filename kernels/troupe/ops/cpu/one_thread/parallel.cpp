#include "troupe/ops/cpu/loops/parallel.hpp"

namespace troupe::cpu {

int threads_for(std::int64_t) { return 1; }

void parallel_for(std::int64_t count, std::int64_t, void (*run)(const void* context, std::int64_t index),
                  const void* context) {
  for (std::int64_t index = 0; index < count; ++index) run(context, index);
}

}  // namespace troupe::cpu
