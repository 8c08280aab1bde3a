#pragma once
#include "bench/benches.hpp"

namespace troupe::bench {

/// `troupe bench worker many_stages`: trains a pipeline of `--stages` small stages, which runs for `--window`
/// seconds, is paused for as long, and ends. Rank 0 prints a line for each of the two windows:
/// {"event":"window","is_paused":..,"begin_s":..,"end_s":..,"process_s":..,"http_s":..}, with the moments on
/// the steady clock and the processor time of the process and of the inspector's thread in between.
void add_many_stages_worker(const bench_commands& to);

}  // namespace troupe::bench
