#include "troupe/ops/numeric_class.hpp"

#include "troupe/ops/isa_names.hpp"

namespace troupe {

std::string numeric_class() { return "plain"; }

void cap_isa(const std::string& name) { require_isa_name(name); }

}  // namespace troupe
