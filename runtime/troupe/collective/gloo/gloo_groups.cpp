#include "troupe/collective/gloo/gloo_group.hpp"

namespace troupe {
namespace {

class gloo_maker final : public group_maker {
 public:
  explicit gloo_maker(const group_maker_options& options) : resources_(options.network_interface) {}
  std::unique_ptr<communicator> make(const group_description& group, store& keys,
                                     const communicator_options& options) override {
    return make_gloo_group(group, keys, resources_, options);
  }

 private:
  gloo_group_resources resources_;
};

}  // namespace

group_backend gloo_groups() {
  return {"gloo", [](const auto& options) { return std::make_unique<gloo_maker>(options); }};
}

}  // namespace troupe
