#pragma once
#include <omp.h>

namespace troupe::cpu {

/// Sets the number of threads that oneDNN uses for calls of this thread while it lives; primitives created
/// meanwhile split their work for this number. Restores OpenMP's previous number at the end.
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
