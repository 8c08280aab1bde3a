#pragma once
#include <string>
#include <vector>

#include "troupe/collective/communicator/communicator.hpp"

namespace troupe::detail {

/// What each member gives, by member: [n] of any dtype on the CPU, n may differ. In CPU memory.
std::vector<tensor> gather_parts(const tensor& own, communicator& group);
std::vector<std::string> gather_texts(const std::string& own, communicator& group);

}  // namespace troupe::detail
