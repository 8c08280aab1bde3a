#include "troupe/collective/libraries/gloo/gloo_group.hpp"

namespace troupe {
namespace {

class gloo_instance final : public backend_instance {
 public:
  explicit gloo_instance(const backend_options& options) : resources_(options.network_interface) {}
  std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                     const communicator_options& options) override {
    return make_gloo_group(group, keys, resources_, options);
  }

 private:
  gloo_group_resources resources_;
};

}  // namespace

group_backend gloo_groups() {
  return {"gloo", [](const auto& options) { return std::make_unique<gloo_instance>(options); }};
}

}  // namespace troupe
