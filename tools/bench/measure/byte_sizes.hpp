#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// From "64", "4K", "256M", several with commas between, or a range "8:256M", in which each size is eight
/// times the one before and the last one is the end. Throws bad_input for other text, for 0, for more than
/// 1G, and for a range that ends below its beginning.
std::vector<std::int64_t> byte_sizes_from(const std::string& text);

}  // namespace troupe::bench
