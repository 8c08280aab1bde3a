#pragma once

namespace troupe {

/// How many threads the operations called by *this* thread may use; other threads keep their own number.
/// With 1 no helper thread is ever made. With more, helpers spin for some milliseconds after each operation
/// before they sleep, unless OMP_WAIT_POLICY=passive was in the environment when the process began; it should
/// be wherever devices use more than one thread. The number is part of what decides the bits.
/// Throws std::invalid_argument if num_threads < 1. Plain kernels always use one thread.
void set_num_threads(int num_threads);

/// What this thread's operations may use now.
int num_threads();

}  // namespace troupe
