#pragma once
#include "bench/benches.hpp"

namespace troupe::bench {

/// `troupe bench worker gpt`: trains a GPT (4 layers, width 256, context 128) on made-up text, `--batch`
/// sequences a step. Rank 0 prints {"event":"trained","step_s":..,"events_per_step":..,"event_ns":..,
/// "weights_sha256":..}: the median time from one step's end to the next, how many events its process records
/// in a step, and how long recording one takes.
void add_gpt_worker(const bench_commands& to);

}  // namespace troupe::bench
