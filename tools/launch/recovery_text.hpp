#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "troupe/cluster/membership.hpp"

namespace troupe {

/// One line for people, without a line end: the lost ranks, the causes, and the time until the next step was
/// done.
/// - `losses`: all of the recovery, by rank, that of the report included
/// - `step`: the number of steps done at the loss
/// - `num_kept`: the number of processes that kept running
/// - `did_step`: whether a step was done since, which a paused job or one between two calls does not do
std::string recovery_line(const cluster::recovery_report& report,
                          const std::vector<cluster::member_loss>& losses, std::uint64_t step, int num_kept,
                          bool did_step);
/// The same as one JSON object:
/// {"event":"recovery","rank":..,"seconds":..,"cause":..,"losses":[{"rank":..,"cause":..},..],"step":..,
/// "generation":..,"detect":.., ... "replay":..}, times in seconds. `rank` and `cause` are those of the first
/// loss.
std::string recovery_json(const cluster::recovery_report& report,
                          const std::vector<cluster::member_loss>& losses, std::uint64_t step, int num_kept);
/// "ranks 2 and 3 were killed by SIGKILL", "rank 1 was killed by SIGKILL and rank 2 ended with exit code 3"
std::string describe_losses(const std::vector<cluster::member_loss>& losses);
/// "rank 2 was killed by SIGKILL", "rank 2 ended with exit code 3", "an actor failed (cause)"
std::string describe_loss(const cluster::member_loss& loss);

}  // namespace troupe
