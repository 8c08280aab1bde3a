#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace troupe::cpu {

/// Runs `run(context, index)` for indices [0, count), each once, on as many threads as this thread may use
/// (troupe/ops/threads.hpp), or on one if there are not even twice `grain` indices. What an index does must
/// not depend on the others, so that the number of threads changes no bit.
void parallel_for(std::int64_t count, std::int64_t grain,
                  void (*run)(const void* context, std::int64_t index), const void* context);

template <class Body>
void parallel_for(std::int64_t count, std::int64_t grain, const Body& body) {
  parallel_for(
      count, grain,
      [](const void* context, std::int64_t index) { (*static_cast<const Body*>(context))(index); },
      std::addressof(body));
}

}  // namespace troupe::cpu
