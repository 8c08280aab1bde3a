#include "troupe/collective/libraries/nccl/nccl_group.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/devices.hpp"

namespace troupe {
namespace {

class nccl_instance final : public backend_instance {
 public:
  explicit nccl_instance(const backend_options& options)
      : gpu_{device::kind::cuda, options.gpu.value_or(options.local_rank)} {
    if (gpu_.index < num_cuda_devices()) {
      on_ = make_nccl_connections(gpu_);
      return;
    }
    throw bad_input("--backend nccl wants a GPU for each process of a host: rank " + to_string(options.rank) +
                    " would take " + to_string(gpu_) + ", and there are " +
                    std::to_string(num_cuda_devices()) +
                    " (see `troupe doctor`); start fewer processes, or use --backend ucx for tensors in CPU "
                    "memory");
  }
  std::unique_ptr<communicator> make(const group_description& group, collective::store& keys,
                                     const communicator_options& options) override {
    return make_nccl_group(group, keys, on_, options);
  }

 private:
  device gpu_;
  std::shared_ptr<collective::nccl_connections> on_;
};

}  // namespace

group_backend nccl_groups() {
  return {"nccl", [](const auto& options) { return std::make_unique<nccl_instance>(options); }, true};
}

}  // namespace troupe
