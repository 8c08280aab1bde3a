#pragma once
#include <nlohmann/json.hpp>
#include <optional>

namespace troupe::bench {

/// What was measured of one size within a moment, in microseconds: one line of the processes that measure.
struct collective_sample {
  double probe = 0;                    ///< a core copies 256 KiB that another one wrote
  double memcpy = 0;                   ///< each member copies as many bytes as the tensor has, all at once
  std::optional<double> own = {};      ///< tensors from communicator::allocate
  std::optional<double> foreign = {};  ///< other tensors
  std::optional<double> gloo = {};     ///< gloo's own call
  std::optional<double> open_mpi = {};

  /// Reads {"probe_us":..,"memcpy_us":..,"own_us":..}; what is not there was not measured.
  static collective_sample from(const nlohmann::json& line);
  nlohmann::json json() const;
};

}  // namespace troupe::bench
