#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// "64", "4K", "256M", several with commas between, or a range "8:256M" of which each is eight times the one
/// before and the last is the end. Throws bad_input for other text, 0, more
/// than 1G, and ranges that end below their beginning.
std::vector<std::int64_t> byte_sizes_from(const std::string& text);

}  // namespace troupe::bench
