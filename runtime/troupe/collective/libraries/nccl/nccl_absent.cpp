#include "troupe/collective/libraries/nccl/nccl_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

std::unique_ptr<communicator> make_nccl_group(const group_description&, store&, device,
                                              const communicator_options&) {
  throw bad_input(
      "Troupe was built without NCCL: build it again where the CUDA Toolkit and NCCL's nccl.h are found, or "
      "choose the backend ucx for tensors in CPU memory");
}

}  // namespace troupe
