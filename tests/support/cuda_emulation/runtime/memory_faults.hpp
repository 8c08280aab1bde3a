#pragma once

namespace troupe::emulation {

/// From now on an access to a page that cannot be touched (behind a block, or of a freed one) ends the
/// program with a text that names the block, unless another handler of SIGSEGV comes after this one. Other
/// faults go to the handler from before. Call it again to come first again.
void watch_memory_faults();

}  // namespace troupe::emulation
