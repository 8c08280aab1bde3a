#pragma once
#include <cstdint>
#include <functional>

namespace troupe::optim {

/// What the learning rate is multiplied with in step `step`, from 0: a pure function, so that a job that was
/// restored goes on as if nothing had happened. None: always 1.
using lr_schedule = std::function<double(std::uint64_t step)>;

/// From 1/warmup_steps up to 1 in equal parts, then 1.
lr_schedule linear_warmup(std::uint64_t warmup_steps);

/// Linear warm-up as above, then half a cosine from 1 down to `final_factor` at step total_steps, and so from
/// there on (Loshchilov, Hutter 2017, without restarts). Throws std::invalid_argument unless warmup_steps <
/// total_steps and final_factor is in [0, 1].
lr_schedule cosine(std::uint64_t total_steps, std::uint64_t warmup_steps = 0, double final_factor = 0);

/// Times `factor` after every `step_size` steps. Throws std::invalid_argument unless step_size >= 1 and
/// factor > 0.
lr_schedule step_decay(std::uint64_t step_size, double factor = 0.1);

}  // namespace troupe::optim
