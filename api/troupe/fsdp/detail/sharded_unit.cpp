#include "troupe/fsdp/detail/sharded_unit.hpp"

#include <utility>

namespace troupe::detail {

std::vector<sharded_unit> make_units(std::vector<unit_of_model> units) {
  std::vector<sharded_unit> result;
  for (auto& unit : units) {
    std::vector<named_parameter> trained, frozen;
    for (auto& each : unit.parameters)
      (each.target->requires_gradient ? trained : frozen).push_back(std::move(each));
    sharded_unit made{std::move(unit.name), {}};
    for (auto* kind : {&trained, &frozen})
      if (!kind->empty()) made.flats.push_back(std::make_unique<flat_parameters>(std::move(*kind)));
    result.push_back(std::move(made));
  }
  return result;
}

std::vector<flat_parameters*> flats_of(const std::vector<sharded_unit>& units) {
  std::vector<flat_parameters*> result;
  for (const auto& unit : units)
    for (const auto& flat : unit.flats) result.push_back(flat.get());
  return result;
}

std::vector<std::vector<std::int64_t>> cut_flats(const std::vector<flat_parameters*>& flats, int num_members,
                                                 layout::shard_granularity granularity) {
  std::vector<std::vector<std::int64_t>> result;
  std::vector<std::int64_t> held(static_cast<std::size_t>(num_members));
  for (const auto* flat : flats) {
    result.push_back(layout::cut_into_shards(flat->sizes(), held, granularity));
    for (std::size_t member = 0; member < held.size(); ++member) held[member] += result.back()[member];
  }
  return result;
}

}  // namespace troupe::detail
