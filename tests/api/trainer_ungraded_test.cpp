// Values that get no gradient go from device to device as others do: masks, tokens, what is detached.
#include <catch2/catch_test_macros.hpp>

#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "support/models/ungraded_models.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

std::vector<named_tensor> trained_variant(const std::string& variant, int devices,
                                          std::vector<std::string> cuts,
                                          schedule_kind kind = schedule_kind::one_f_one_b, int replicas = 1) {
  auto options = small_options();
  options.steps = 6;
  auto pipeline = Pipeline(ungraded_model(variant))
                      .cut_before(std::move(cuts))
                      .microbatches(4)
                      .replicas(replicas)
                      .schedule(kind)
                      .optimizer(optim::AdamW({.lr = 0.01}));
  Trainer trainer(World::local(devices, options), pipeline);
  trainer.fit(token_rows());
  return trainer.state_dict();
}

}  // namespace

TEST_CASE("values without gradients cross devices: the bits of one device, for every cut and schedule") {
  const std::vector<std::string> four{"second", "third", "fourth"};
  for (const auto& variant : ungraded_variants()) {
    CAPTURE(variant);
    auto whole = trained_variant(variant, 1, {});
    CHECK(same_bits(trained_variant(variant, 2, {"third"}), whole));
    CHECK(same_bits(trained_variant(variant, 2, {"second"}), whole));
    for (auto kind : {schedule_kind::gpipe, schedule_kind::one_f_one_b, schedule_kind::zb_h1})
      CHECK(same_bits(trained_variant(variant, 4, four, kind), whole));
    CHECK(same_bits(trained_variant(variant, 2, four, schedule_kind::zb_h1), whole));
  }
}

TEST_CASE("values without gradients cross the devices of replicas: the bits of a device for each") {
  for (const auto& variant : ungraded_variants()) {
    CAPTURE(variant);
    auto whole = trained_variant(variant, 2, {}, schedule_kind::one_f_one_b, 2);
    CHECK(same_bits(trained_variant(variant, 4, {"third"}, schedule_kind::one_f_one_b, 2), whole));
    CHECK(same_bits(trained_variant(variant, 8, {"second", "third", "fourth"}, schedule_kind::zb_h1, 2),
                    whole));
  }
}
