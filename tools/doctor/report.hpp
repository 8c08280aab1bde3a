#pragma once
#include <ostream>

#include "finding.hpp"

namespace troupe::doctor {

/// Whether the machine has everything that the demo needs.
bool demo_can_run(const findings& found);

/// A table for people: one aligned block per group, remedies below their findings, the conclusion last.
void print_table(const findings& found, std::ostream& out);

/// {"group":..,"name":..,"status":"ok|absent|warning|missing","value":..,"remedy":..} a line, and last
/// {"event":"done","demo_can_run":..}.
void print_json(const findings& found, std::ostream& out);

}  // namespace troupe::doctor
