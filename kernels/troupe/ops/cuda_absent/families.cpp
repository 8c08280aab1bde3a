#include "troupe/error/errors.hpp"
#include "troupe/ops/kernels/all.hpp"

namespace troupe {

const device_kernels& cuda_kernels(device where) {
  throw bad_input(to_string(where) + " is not there: Troupe was built without CUDA");
}

}  // namespace troupe
