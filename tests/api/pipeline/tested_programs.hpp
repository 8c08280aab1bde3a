#pragma once
#include <utility>

#include "support/devices.hpp"
#include "troupe/pipeline/detail/module_program.hpp"

namespace troupe::testing {

/// make_module_programs on the device under test. `cut`: a number of stages or a partition.
template <class Cut>
program::program_factory programs_of(nn::Graph model, Cut cut, detail::module_program_options options) {
  options.place = [](const layout::cell&) { return device_under_test(); };
  return detail::make_module_programs(std::move(model), std::move(cut), std::move(options));
}

}  // namespace troupe::testing
