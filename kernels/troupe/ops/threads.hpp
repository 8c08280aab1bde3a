#pragma once

namespace troupe {

/// How many threads the operations called by *this* thread may use; other threads keep their own number.
/// With 1 no helper thread is ever made. With more, helpers sleep shortly after the operation (they wait
/// passively from the start when OMP_WAIT_POLICY=passive was set before the process began, which is what
/// devices that outnumber cores want). The number is part of what decides the bits.
/// Throws std::invalid_argument if num_threads < 1. Plain kernels always use one thread.
void set_num_threads(int num_threads);

/// What this thread's operations may use now.
int num_threads();

}  // namespace troupe
