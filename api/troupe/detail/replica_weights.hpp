#pragma once
#include <cstdint>
#include <string>

namespace troupe::detail {

/// What the user of `call` must know of the weights that it is about, after `steps` optimizer steps with
/// Pipeline::average_every: they are those of replica 0, if the replicas have stepped since the last average.
/// Empty: nothing, since all replicas have the same.
std::string note_on_weights(const std::string& call, int average_every, std::uint64_t steps);

}  // namespace troupe::detail
