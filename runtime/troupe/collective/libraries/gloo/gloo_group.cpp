#include "troupe/collective/libraries/gloo/gloo_group.hpp"

#include <gloo/transport/tcp/device.h>

#include "troupe/collective/libraries/call_thread.hpp"
#include "troupe/collective/libraries/gloo/gloo_backend.hpp"
#include "troupe/collective/libraries/gloo/gloo_mesh.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

class gloo_instance final : public backend_instance {
 public:
  explicit gloo_instance(const backend_options& options) : resources_(options.network_interface) {}
  std::unique_ptr<communicator> make(const group_description& group, collective::store& keys,
                                     const communicator_options& options) override {
    return make_gloo_group(group, keys, resources_, options);
  }

 private:
  gloo_group_resources resources_;
};

}  // namespace

gloo_group_resources::gloo_group_resources(const std::string& interface) {
  collective::broken_pipe_guard guard;  // for gloo's thread, which begins here
  ::gloo::transport::tcp::attr where;
  where.iface = interface;
  try {
    device_ = ::gloo::transport::tcp::CreateDevice(where);
  } catch (const std::exception& failure) {
    throw bad_input("gloo cannot listen on the network interface '" + interface + "': " + failure.what() +
                    "; see `ip address` for those of this host");
  }
}

std::unique_ptr<communicator> make_gloo_group(const group_description& group, collective::store& keys,
                                              gloo_group_resources& resources,
                                              const communicator_options& options) {
  collective::broken_pipe_guard guard;
  auto device = std::static_pointer_cast<::gloo::transport::Device>(resources.device());
  auto mesh = std::make_shared<collective::gloo_mesh>(group, keys, std::move(device), options.timeout);
  return std::make_unique<communicator>(
      group, std::make_unique<collective::gloo_backend>(group, keys, std::move(mesh)), options);
}

group_backend gloo_groups() {
  return {"gloo", [](const auto& options) { return std::make_unique<gloo_instance>(options); }};
}

}  // namespace troupe
