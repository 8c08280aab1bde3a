#include "troupe/ops/cpu/loops/parallel.hpp"

#include <exception>

#include "troupe/ops/threads.hpp"

namespace troupe::cpu {

int threads_for(std::int64_t elements) { return elements < elements_worth_a_team ? 1 : num_threads(); }

// Always uses all threads or one: libgomp ends the threads that a smaller region does not use, and starts new
// ones for the next region.
void parallel_for(std::int64_t count, std::int64_t elements,
                  void (*run)(const void* context, std::int64_t index), const void* context) {
  auto threads = threads_for(elements);
  if (threads == 1 || count <= 1) {
    for (std::int64_t index = 0; index < count; ++index) run(context, index);
    return;
  }
  std::exception_ptr thrown;  // none may leave the parallel region
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t index = 0; index < count; ++index) try {
      run(context, index);
    } catch (...) {
#pragma omp critical(troupe_parallel_for)
      thrown = std::current_exception();
    }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace troupe::cpu
