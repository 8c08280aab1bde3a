#pragma once

namespace troupe {

// The C library's exp and log choose code by processor and give other bits with and without fused
// multiply-add. These are plain arithmetic: the same bits on every machine.

/// e^x within 2 units in the last place for x in [-708, 709]; 0 below that.
double exponential(double x);

/// Natural logarithm of a positive, finite, normal x, within 4 units in the last place of max(1, |log x|).
double logarithm(double x);

}  // namespace troupe
