#pragma once
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace troupe::bench {

/// What was measured of one size within a moment, in microseconds by name. Every sample has
///   probe_us     a core copies 256 KiB that another core wrote
///   memcpy_us    each member copies as many bytes as the tensor has, all at once
/// and what its processes measure: of a group
///   own_us       a call with a tensor of communicator::allocate
///   foreign_us   a call with another tensor
/// and of a peer gloo_us or open_mpi_us, its own call.
using collective_sample = std::map<std::string, double>;
using collective_samples = std::vector<collective_sample>;

/// Spreads of what the samples have, and ratios. own_over_memcpy and foreign_over_memcpy compare within each
/// sample; gloo_over_own and open_mpi_over_own, of processes of their own, compare medians. null for what was
/// not measured.
nlohmann::ordered_json summary_of(const collective_samples& samples);

/// The samples whose probe took less than `probe_us`, and the others.
struct parted_samples {
  collective_samples fast, slow;
};
parted_samples part_at(double probe_us, const collective_samples& samples);

/// Whether a machine ran at two speeds while it took these times: if so, a threshold between the fast times
/// and the slow ones. It lies in the middle of the widest gap (by ratio) that has a tenth of the times on
/// either side. Nothing if the medians of the sides differ by less than half, and for fewer than eight times.
std::optional<double> speed_threshold(std::vector<double> times);

}  // namespace troupe::bench
