#pragma once

namespace troupe::emulation {

/// Installs a handler of SIGSEGV: an access to a guard page (behind a block, or of a freed one) ends the
/// program with a text that names the block. Other faults go to the previous handler. Call it again after
/// another handler was installed.
void watch_memory_faults();

}  // namespace troupe::emulation
