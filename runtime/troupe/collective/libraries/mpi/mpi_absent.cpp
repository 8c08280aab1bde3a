#include "troupe/collective/libraries/mpi/mpi_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

[[noreturn]] void refuse() {
  throw bad_input(
      "Troupe was built without MPI: install Debian's libopenmpi-dev and build it again, or choose the "
      "backend "
      "ucx");
}

}  // namespace

struct mpi_group_resources::kept_memory {};

mpi_group_resources::mpi_group_resources() { refuse(); }
mpi_group_resources::~mpi_group_resources() = default;
void mpi_group_resources::keep(std::shared_ptr<void>) { refuse(); }

std::unique_ptr<communicator> make_mpi_group(const group_description&, collective::store&,
                                             mpi_group_resources&, const communicator_options&) {
  refuse();
}

group_backend mpi_groups() {
  return {"mpi", [](const auto&) -> std::unique_ptr<backend_instance> { refuse(); }};
}

}  // namespace troupe
