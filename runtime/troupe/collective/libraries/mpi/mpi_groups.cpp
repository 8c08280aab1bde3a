#include "troupe/collective/libraries/mpi/mpi_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

class mpi_instance final : public backend_instance {
 public:
  explicit mpi_instance(const backend_options& options) {
    if (resources_.size() == options.world_size && resources_.rank() == options.rank) return;
    throw bad_input("--backend mpi: this is rank " + std::to_string(options.rank) + " of " +
                    std::to_string(options.world_size) + " in the job, but " +
                    std::to_string(resources_.rank()) + " of " + std::to_string(resources_.size()) +
                    " for MPI: start the program with `mpirun -n " + std::to_string(options.world_size) +
                    " PROGRAM` and without another launcher");
  }
  std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                     const communicator_options& options) override {
    return make_mpi_group(group, keys, resources_, options);
  }

 private:
  mpi_group_resources resources_;
};

}  // namespace

group_backend mpi_groups() {
  return {"mpi", [](const auto& options) { return std::make_unique<mpi_instance>(options); }};
}

}  // namespace troupe
