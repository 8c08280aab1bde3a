#include "bench/collective/collective_sample.hpp"

namespace troupe::bench {
namespace {

using member = std::optional<double> collective_sample::*;

constexpr std::pair<const char*, member> optional_fields[] = {{"own_us", &collective_sample::own},
                                                              {"foreign_us", &collective_sample::foreign},
                                                              {"gloo_us", &collective_sample::gloo},
                                                              {"open_mpi_us", &collective_sample::open_mpi}};

}  // namespace

collective_sample collective_sample::from(const nlohmann::json& line) {
  collective_sample read{line.at("probe_us"), line.at("memcpy_us")};
  for (auto [name, field] : optional_fields)
    if (line.contains(name)) read.*field = line.at(name).get<double>();
  return read;
}

nlohmann::json collective_sample::json() const {
  nlohmann::json line{{"probe_us", probe}, {"memcpy_us", memcpy}};
  for (auto [name, field] : optional_fields)
    if (this->*field) line[name] = *(this->*field);
  return line;
}

}  // namespace troupe::bench
