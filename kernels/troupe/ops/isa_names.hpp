#pragma once
#include <string_view>

namespace troupe {

/// Throws bad_input, naming the choices, unless `name` is one that cap_isa takes.
void require_isa_name(std::string_view name);

}  // namespace troupe
