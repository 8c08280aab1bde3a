#pragma once

namespace troupe {

/// Sets the maximum number of CPU threads for operations called by *this* thread; the default is 1. The
/// setting is per thread and independent of OMP_NUM_THREADS. With 1, no helper threads are created. With
/// more, small operations (below some 100,000 elements, or 8 million operations of a matrix product) still
/// run on the calling thread. Helper threads spin for some milliseconds after each operation before they
/// sleep, which is slow if other programs use the cores too, unless the process was started with
/// OMP_WAIT_POLICY=passive.
///
/// No bit depends on the number. Jobs set it from `job_options::threads` for each device. Throws
/// std::invalid_argument if num_threads < 1. The build with TROUPE_PLAIN_KERNELS always uses one thread.
void set_num_threads(int num_threads);

/// The maximum number of threads for this thread's operations.
int num_threads();

}  // namespace troupe
