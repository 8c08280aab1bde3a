#pragma once

namespace troupe {

// The C library's exp, log and cos choose code by processor and give other bits with and without fused
// multiply-add. These are plain arithmetic: the same bits on every machine.

/// e^x within 2 units in the last place for x in [-708, 709]; 0 below that.
double exponential(double x);

/// Natural logarithm of a positive, finite, normal x, within 4 units in the last place of max(1, |log x|).
double logarithm(double x);

/// cos(pi t) within 1e-15 for t in [0, 1].
double cosine_of_pi_times(double t);

}  // namespace troupe
