#include "bench/collective/collective_aims.hpp"

namespace troupe::bench {

std::string why_no_verdict(const measured_group& group) {
  if (group.operation != "all_reduce" || group.backend != "ucx") return "only all_reduce over ucx has aims";
  if (group.cores < 4) return "on fewer than four cores";
  if (group.ranks > group.cores && group.ranks != 2 * group.cores) return "with more ranks than cores";
  return {};
}

std::vector<collective_aim> aims_of(const measured_group& group, std::int64_t size_bytes,
                                    const collective_summary& measured) {
  constexpr std::int64_t mib = 1 << 20;
  if (!why_no_verdict(group).empty()) return {};
  std::vector<collective_aim> aims;
  auto other = measured.open_mpi_over_own;
  if (size_bytes == 8 && other > 0)
    aims.push_back({"own/Open MPI", true, group.ranks > group.cores ? 2.0 : 1.2, 1 / other});
  if (group.ranks > group.cores || size_bytes < mib || size_bytes > 64 * mib) return aims;
  aims.push_back({"own/memcpy", true, 1.5, measured.own_over_memcpy.median});
  auto least = size_bytes <= 4 * mib ? 4.0 : 2.0;
  if (measured.gloo_over_own > 0) aims.push_back({"Gloo/own", false, least, measured.gloo_over_own});
  if (other > 0) aims.push_back({"Open MPI/own", false, least, other});
  return aims;
}

}  // namespace troupe::bench
