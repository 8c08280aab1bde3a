#include "troupe/collective/libraries/nccl/nccl_group.hpp"

#include <algorithm>
#include <thread>

#include "troupe/collective/libraries/nccl/nccl_backend.hpp"
#include "troupe/error/device_lost.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/tensor/captured_step.hpp"
#include "troupe/tensor/cuda/cuda_error.hpp"

namespace troupe {
namespace {

/// A group that ends in peace waits for NCCL no longer than this.
constexpr std::chrono::milliseconds finalize_timeout = std::chrono::seconds(10);

void wait_until_ready(collective::nccl_backend& backend, const group_description& group,
                      const collective::store& keys, std::chrono::milliseconds timeout) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!backend.is_ready()) {
    keys.check();
    if (std::chrono::steady_clock::now() > deadline) {
      collective_error late(collective_failure::timed_out, group.name, 0, {},
                            "group " + group.name + " did not come together over NCCL within " +
                                std::to_string(timeout.count()) + " ms");
      backend.abort(late);
      throw late;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

collective_error cannot_begin(const group_description& group, const std::exception& failure) {
  return {collective_failure::transport,
          group.name,
          0,
          {},
          "group " + group.name + " cannot begin over NCCL: " + failure.what()};
}

}  // namespace

std::shared_ptr<collective::nccl_connections> make_nccl_connections(
    device gpu, std::chrono::milliseconds time_for_others) {
  if (gpu.type != device::kind::cuda)
    throw bad_input("NCCL's groups are of GPUs, expected cuda:N, got " + to_string(gpu));
  return std::make_shared<collective::nccl_connections>(gpu, time_for_others);
}

std::unique_ptr<communicator> make_nccl_group(const group_description& group, collective::store& keys,
                                              std::shared_ptr<collective::nccl_connections> on,
                                              const communicator_options& options) {
  refuse_in_capture("make_nccl_group");
  auto timeout = std::min(options.timeout, longest_timeout);
  try {
    auto backend = std::make_unique<collective::nccl_backend>(group, keys, std::move(on),
                                                              std::min(timeout, finalize_timeout));
    wait_until_ready(*backend, group, keys, timeout);
    return std::make_unique<communicator>(group, std::move(backend), options);
  } catch (const collective::nccl_error& failure) {
    throw cannot_begin(group, failure);
  } catch (const cuda_error& failure) {
    throw cannot_begin(group, failure);
  } catch (const device_lost& failure) {
    throw cannot_begin(group, failure);
  }
}

}  // namespace troupe
