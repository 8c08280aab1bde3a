#pragma once

namespace troupe {

/// The calling thread works little at a time and others wait for it: when it wakes on a core that is busy, it
/// runs at once instead of at the next tick (4 ms), and is interrupted as soon. It gets no larger share of
/// the processor. Needs no privilege; where Linux knows no such slices (before 6.12), nothing changes.
void ask_for_short_slices();

}  // namespace troupe
