#include "troupe/collective/nccl/nccl_group.hpp"

#include <thread>

#include "troupe/collective/nccl/nccl_backend.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

std::unique_ptr<communicator> make_nccl_group(const group_description& group, store& rendezvous, device gpu,
                                              const communicator_options& options) {
  if (gpu.type != device::kind::cuda)
    throw bad_input("NCCL's groups are of GPUs, expected cuda:N, got " + to_string(gpu));
  auto backend = std::make_unique<nccl_backend>(group, rendezvous, gpu);
  auto deadline = std::chrono::steady_clock::now() + options.timeout;
  try {
    while (!backend->is_ready()) {
      rendezvous.check();
      if (std::chrono::steady_clock::now() > deadline) {
        backend->abort(collective_error(collective_failure::timed_out, group.name, 0, {}, "nobody came"));
        throw collective_error(collective_failure::timed_out, group.name, 0, {},
                               "group " + group.name + " did not come together over NCCL within " +
                                   std::to_string(options.timeout.count()) + " ms");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  } catch (const nccl_error& failure) {
    throw collective_error(collective_failure::transport, group.name, 0, {},
                           "group " + group.name + " cannot begin over NCCL: " + failure.what());
  }
  return std::make_unique<communicator>(group, std::move(backend), options);
}

}  // namespace troupe
