#pragma once
#include <string_view>

namespace troupe::emulation {

/// The order in which the threads of a block run. A thread runs until it waits for others; then the next one
/// that can run does. A correct kernel gives the same bits in every order.
enum class thread_order { ascending, descending, shuffled, warp_by_warp };

/// When cp.async writes: as the thread waits for it, or as it is issued.
enum class copy_time { late, early };

struct execution_options {
  thread_order order = thread_order::ascending;
  /// Late copies expose a missing wait, early ones a buffer that is overwritten while it is read.
  copy_time copies = copy_time::late;
  /// The seed of thread_order::shuffled. Each block of a launch has another order.
  unsigned seed = 1;
};

/// "ascending", "descending", "shuffled" or "warps". Throws bad_input for anything else.
thread_order order_named(std::string_view name);

/// The options from TROUPE_EMULATION_ORDER (as order_named) and TROUPE_EMULATION_EARLY_COPIES (0 or 1), read
/// once.
const execution_options& process_options();

}  // namespace troupe::emulation
