#include "troupe/collective/gloo/gloo_group.hpp"

#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include "troupe/collective/gloo/gloo_backend.hpp"
#include "troupe/collective/gloo/gloo_store.hpp"
#include "troupe/collective/library/broken_pipe_guard.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {

gloo_group_resources::gloo_group_resources(const std::string& address) {
  broken_pipe_guard guard;  // for gloo's thread, which begins here
  try {
    device_ = ::gloo::transport::tcp::CreateDevice(::gloo::transport::tcp::attr(address.c_str()));
  } catch (const std::exception& failure) {
    throw bad_input("gloo cannot listen at \"" + address + "\": " + failure.what() +
                    "; give an address of this host");
  }
}

std::unique_ptr<communicator> make_gloo_group(const group_description& group, store& rendezvous,
                                              gloo_group_resources& resources,
                                              const communicator_options& options) {
  broken_pipe_guard guard;
  auto device = std::static_pointer_cast<::gloo::transport::Device>(resources.device());
  auto context = std::make_shared<::gloo::rendezvous::Context>(group.member, group.size());
  context->setTimeout(options.timeout);
  gloo_store place(group, rendezvous, options.timeout);
  try {
    context->connectFullMesh(place, device);
  } catch (const ::gloo::Exception& failure) {
    throw collective_error(collective_failure::transport, group.name, 0, {},
                           "group " + group.name + " cannot begin over gloo: " + failure.what());
  }
  return std::make_unique<communicator>(group, std::make_unique<gloo_backend>(group, rendezvous, context),
                                        options);
}

}  // namespace troupe
