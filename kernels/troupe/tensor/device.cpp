#include "troupe/tensor/device.hpp"

namespace troupe {

std::string to_string(const device& where) { return "cpu:" + std::to_string(where.index); }

}  // namespace troupe
