#pragma once
#include <mpi.h>

#include <source_location>
#include <stdexcept>
#include <string>

namespace troupe {

/// MPI refused: `what` gives its words and the function of ours that called.
class mpi_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline void check_mpi(int status, const std::source_location& where = std::source_location::current()) {
  if (status == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(status, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw mpi_error("MPI: " + text + " (in " + where.function_name() + ')');
}

}  // namespace troupe
