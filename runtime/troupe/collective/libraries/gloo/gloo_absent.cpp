#include "troupe/collective/libraries/gloo/gloo_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

[[noreturn]] void refuse() {
  throw bad_input(
      "Troupe was built without gloo: install Debian's libgloo-dev and build it again, or choose the backend "
      "ucx");
}

}  // namespace

gloo_group_resources::gloo_group_resources(const std::string&) { refuse(); }

std::unique_ptr<communicator> make_gloo_group(const group_description&, collective::store&,
                                              gloo_group_resources&, const communicator_options&) {
  refuse();
}

group_backend gloo_groups() {
  return {"gloo", [](const auto&) -> std::unique_ptr<backend_instance> { refuse(); }};
}

}  // namespace troupe
