#pragma once
#include <mpi.h>

#include <list>
#include <memory>

#include "troupe/collective/libraries/library_backend.hpp"
#include "troupe/collective/libraries/mpi/mpi_calls.hpp"
#include "troupe/collective/libraries/mpi/mpi_group.hpp"

namespace troupe {

/// The calls of a group as non-blocking MPI calls, which make progress when they are tested.
class mpi_backend final : public library_backend {
 public:
  /// Takes ownership of the communicator.
  mpi_backend(group_description group, store& keys, mpi_group_resources& resources, MPI_Comm with);
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
  MPI_Comm with_;
  std::list<std::shared_ptr<mpi_call>> in_flight_;
  bool is_closed_ = false;
};

}  // namespace troupe
