#pragma once
#include "bench/benches.hpp"

namespace troupe::bench {

/// `troupe bench worker gpt`: trains a GPT (4 layers, width 256, context 128) on made-up text, `--batch`
/// sequences a step. Rank 0 prints {"event":"trained","step_s":..,"weights_sha256":..}, with the median time
/// from one step's end to the next.
void add_gpt_worker(const bench_commands& to);

}  // namespace troupe::bench
