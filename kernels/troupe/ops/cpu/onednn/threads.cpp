#include "troupe/ops/threads.hpp"

#include <omp.h>

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

void set_num_threads(int num_threads) {
  if (num_threads < 1) throw_invalid("set_num_threads", "num_threads >= 1", std::to_string(num_threads));
  omp_set_num_threads(num_threads);
}

int num_threads() { return omp_get_max_threads(); }

}  // namespace troupe
