#pragma once

namespace troupe {

/// cos(pi t) within 1e-15 for t in [0, 1]: plain arithmetic, the same bits on every machine.
double cosine_of_pi_times(double t);

}  // namespace troupe
