#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace troupe::optim {

/// The factor of the learning rate in step `step`, from 0. Must be a pure function, so that a restored job
/// continues with the same bits. Null: always 1.
using lr_schedule = std::function<double(std::uint64_t step)>;

/// Linear from 1/warmup_steps to 1, then constant 1.
lr_schedule linear_warmup(std::uint64_t warmup_steps);

/// Linear warm-up as above, then half a cosine from 1 to `final_factor` at step total_steps, then constant
/// (Loshchilov, Hutter 2017, without restarts). Throws std::invalid_argument unless warmup_steps <
/// total_steps and final_factor is in [0, 1].
lr_schedule cosine(std::uint64_t total_steps, std::uint64_t warmup_steps = 0, double final_factor = 0);

/// Multiplies the factor by `factor` every `step_size` steps. Throws std::invalid_argument unless step_size
/// >= 1 and factor > 0.
lr_schedule step_decay(std::uint64_t step_size, double factor = 0.1);

/// How the schedule was made, "cosine(1000, 100, 0)"; "constant" for null; empty for a function of one's own.
std::string text_of(const lr_schedule& schedule);

}  // namespace troupe::optim
