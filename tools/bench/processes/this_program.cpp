#include "bench/processes/this_program.hpp"

#include <filesystem>

namespace troupe::bench {

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace troupe::bench
