#include "troupe/collective/libraries/nccl/nccl_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

[[noreturn]] void refuse() {
  throw bad_input(
      "Troupe was built without NCCL: build it again where the CUDA Toolkit and NCCL's nccl.h are found, or "
      "choose the backend ucx for tensors in CPU memory");
}

}  // namespace

std::shared_ptr<collective::nccl_connections> make_nccl_connections(device, std::chrono::milliseconds) {
  refuse();
}

std::unique_ptr<communicator> make_nccl_group(const group_description&, collective::store&,
                                              std::shared_ptr<collective::nccl_connections>,
                                              const communicator_options&) {
  refuse();
}

}  // namespace troupe
