#pragma once
#include <ostream>

#include "finding.hpp"

namespace troupe::doctor {

/// Whether nothing that the demo needs is missing.
bool demo_can_run(const findings& found);

/// A table for people: a block a group, aligned, remedies below what they mend, the conclusion last.
void print_table(const findings& found, std::ostream& out);

/// {"group":..,"name":..,"status":"ok|absent|warning|missing","value":..,"remedy":..} a line, and last
/// {"event":"done","demo_can_run":..}.
void print_json(const findings& found, std::ostream& out);

}  // namespace troupe::doctor
