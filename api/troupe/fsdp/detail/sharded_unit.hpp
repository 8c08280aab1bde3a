#pragma once
#include <memory>
#include <string>
#include <vector>

#include "troupe/fsdp/detail/flat_parameters.hpp"
#include "troupe/fsdp/detail/unit_division.hpp"

namespace troupe::detail {

/// A unit's parameters: the trained ones and the frozen ones, of which there may be none.
struct sharded_unit {
  std::string name;
  std::vector<std::unique_ptr<flat_parameters>> flats;
};

std::vector<sharded_unit> make_units(std::vector<unit_of_model> units);
/// All flats, in the order of the units.
std::vector<flat_parameters*> flats_of(const std::vector<sharded_unit>& units);

/// The elements of each member's part of each flat, in order: parts of later ones make up for differences.
std::vector<std::vector<std::int64_t>> cut_flats(const std::vector<flat_parameters*>& flats, int num_members,
                                                 layout::shard_granularity granularity);

}  // namespace troupe::detail
