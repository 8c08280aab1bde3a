#pragma once

namespace troupe {

/// How many threads the operations called by *this* thread may use on the CPU: 1 unless it says otherwise
/// here; every thread has a number of its own, and OMP_NUM_THREADS changes none. With 1 no helper thread is
/// ever made. With more, operations too small for a team (some 100,000 elements, or 8 million operations of a
/// matrix product) still use this thread alone, and those that are large enough share the work with helpers.
/// These spin for some milliseconds after each operation before they sleep, which is slow where other
/// programs use the cores too, unless OMP_WAIT_POLICY=passive was in the environment when the process began.
///
/// The number is part of what decides the bits of matrix products and convolutions. Jobs set it from
/// `job_options::threads` for each device. Throws std::invalid_argument if num_threads < 1. Plain kernels
/// always use one thread.
void set_num_threads(int num_threads);

/// What this thread's operations may use now.
int num_threads();

}  // namespace troupe
