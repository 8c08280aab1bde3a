#pragma once
#include <omp.h>

namespace troupe::cpu {

/// While it lives, oneDNN uses so many threads for what this thread asks of it, and fixes how it splits the
/// work of a primitive that is made. OpenMP's own number, which the rest of the program may have set for this
/// thread, comes back at the end.
class library_threads {
 public:
  explicit library_threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~library_threads() { omp_set_num_threads(before_); }
  library_threads(const library_threads&) = delete;
  library_threads& operator=(const library_threads&) = delete;

 private:
  int before_;
};

}  // namespace troupe::cpu
