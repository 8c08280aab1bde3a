#pragma once
#include <mpi.h>

#include <list>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <vector>

#include "troupe/collective/calls/operation.hpp"
#include "troupe/collective/libraries/library_backend.hpp"
#include "troupe/collective/libraries/mpi/mpi_group.hpp"
#include "troupe/error/function_name.hpp"

namespace troupe::collective {

/// One MPI call in flight, with all memory that it accesses. The memory belongs to the call, since MPI cannot
/// cancel a collective.
struct mpi_call {
  MPI_Request request = MPI_REQUEST_NULL;
  tensor input, output;                    ///< own copies, or the caller's input
  std::vector<int> counts, offsets;        ///< [members] in elements
  std::vector<call_signature> signatures;  ///< [members]
  call_signature own;
};

/// They start non-blocking MPI calls and return the MPI status.
namespace mpi_calls {

int exchange_signatures(mpi_call& running, MPI_Comm comm, const collective_operation& what);
/// what: a collective with elements. size: of the group; member: this one.
int begin(mpi_call& running, MPI_Comm comm, const collective_operation& what, int member, int size);
/// Copies the results to the caller's output.
void finish(mpi_call& running, const collective_operation& what, int member, int size);

}  // namespace mpi_calls

/// An MPI call failed. what() has MPI's text and the calling function.
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
  throw mpi_error("MPI: " + text + " (in " + short_function_name(where) + ')');
}

/// The calls of a group as non-blocking MPI calls, which make progress when they are tested.
class mpi_backend final : public library_backend {
 public:
  /// Takes ownership of the communicator.
  mpi_backend(group_description group, store& keys, mpi_group_resources& resources, MPI_Comm comm);
  ~mpi_backend() override;

  std::string_view name() const override { return "mpi"; }
  algorithm run(const collective_operation& what, std::uint64_t sequence) override;

 private:
  algorithm run_collective(const collective_operation& what, std::uint64_t sequence);
  algorithm send(const collective_operation& what, std::uint64_t sequence);
  algorithm receive(const collective_operation& what, std::uint64_t sequence);
  bool has_ended(mpi_call& given, const collective_operation& what, std::uint64_t sequence);
  void close(const collective_error& why) noexcept override;
  std::chrono::microseconds poll_interval() const override { return std::chrono::microseconds(200); }

  mpi_group_resources& resources_;
  MPI_Comm comm_;
  std::list<std::shared_ptr<mpi_call>> in_flight_;
  bool is_closed_ = false;
};

}  // namespace troupe::collective
