// Copies of shards in other members' memory: loops that go on without a lost member.
#include "troupe/fsdp/sharded_copies.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <mutex>
#include <optional>

#include "api/fsdp/sharded_training.hpp"
#include "troupe/fsdp/detail/state/complete_state.hpp"
#include "troupe/optim/lamb.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using detail::known_part;
using detail::newest_complete_state;

namespace {

/// One member's part in the run of a group: from the newest state that there is to `last`, or until the
/// member numbered `lost` fails the group, in its step `last`.
struct member_run {
  int num_replicas = 6;
  std::uint64_t last = 0;
  int lost = -1;
  optim::Optimizer optimizer = optim::Adam({.lr = 1e-2});
  fully_sharded_options options = {.unit_size_mb = small_units};
};

struct run_result {
  std::vector<std::optional<std::uint64_t>> begun;  ///< by member
  std::vector<named_tensor> weights;
};

/// Each member with copies of its own, which outlive the group.
run_result run_group(std::vector<sharded_copies>& copies, const member_run& run) {
  run_result result{std::vector<std::optional<std::uint64_t>>(copies.size()), {}};
  auto example = tokens();
  // Copies may refer to the group until they are asked again.
  static std::vector<std::shared_ptr<communicator>> kept;
  auto made = collective::make_local_group(static_cast<int>(copies.size()));
  std::vector<std::shared_ptr<communicator>> members(std::make_move_iterator(made.begin()),
                                                     std::make_move_iterator(made.end()));
  kept.insert(kept.end(), members.begin(), members.end());
  std::vector<std::thread> threads;
  for (std::size_t member = 0; member < copies.size(); ++member)
    threads.emplace_back([&, member] {
      auto model = materialized(example);
      auto options = run.options;
      options.num_replicas = run.num_replicas;
      FullyShardedDataParallel sharded(*model, members[member], options);
      auto optimizer = sharded.make_optimizer(run.optimizer);
      result.begun[member] = copies[member].restore(sharded, *optimizer);
      try {
        std::vector<float> losses;
        while (sharded.step() < run.last) {
          auto step = sharded.step();
          if (static_cast<int>(member) == run.lost && step + 1 == run.last) {
            members[member]->abort("a member is lost");
            return;
          }
          run_sharded_passes(sharded, example, {.num_replicas = run.num_replicas}, step, losses);
          optimizer->apply(step);
          copies[member].take(sharded, *optimizer);
        }
        auto weights = sharded.state_dict();
        if (member == 0) result.weights = std::move(weights);
      } catch (const collective_error&) {
      }
    });
  for (auto& each : threads) each.join();
  return result;
}

}  // namespace

TEST_CASE(
    "a loop goes on with as many members as before, or fewer or more, to the bits of one that lost none") {
  for (const auto& kind :
       {optim::Optimizer(optim::Adam({.lr = 1e-2})), optim::Optimizer(optim::LAMB({.lr = 1e-2}))}) {
    auto whole = train_whole(tokens(), {.num_replicas = 6, .optimizer = kind, .num_steps = 6});
    for (auto strategy : {shard_strategy::full, shard_strategy::grad})
      for (std::size_t members : {3, 2, 6, 1}) {
        CAPTURE(to_string(strategy), members);
        member_run run{.last = 4, .lost = 1, .optimizer = kind};
        run.options.strategy = strategy;
        std::vector<sharded_copies> copies(3);
        auto first = run_group(copies, run);
        CHECK(first.begun == std::vector<std::optional<std::uint64_t>>(3));
        CHECK(first.weights.empty());
        copies[1] = {};  // with its process
        if (members < 3) copies.erase(copies.begin() + 1);
        copies.resize(members);
        run.last = 6;
        run.lost = -1;
        auto second = run_group(copies, run);
        if (members == 1) {  // of three, two are gone: nothing is complete
          CHECK(second.begun == std::vector<std::optional<std::uint64_t>>(1));
        } else {
          // The newest state, or the one before if the lost member had not given its part away.
          for (const auto& each : second.begun) CHECK((each == second.begun[0] && each >= 2 && each <= 3));
        }
        CHECK(same_bits(second.weights, whole.weights));
      }
  }
}

TEST_CASE("members may be lost one after the other, at any step") {
  auto whole = train_whole(tokens(), {.num_replicas = 6, .num_steps = 8});
  std::vector<sharded_copies> copies(3);
  for (int lost : {2, 0, 1, 2}) {
    auto begun = run_group(copies, {.last = static_cast<std::uint64_t>(3 + lost), .lost = lost}).begun;
    CHECK(begun[0] == begun[2]);
    copies[static_cast<std::size_t>(lost)] = {};
  }
  auto last = run_group(copies, {.last = 8});
  CHECK(same_bits(last.weights, whole.weights));
  for (const auto& each : copies) {
    CHECK(each.steps().back() == 8);
    CHECK(each.steps().size() <= 3);
    CHECK(each.size_bytes() > 0);
  }
}

TEST_CASE("two neighbours that are lost together take a part with them") {
  std::vector<sharded_copies> copies(3);
  run_group(copies, {.last = 3});
  copies[0] = copies[1] = {};
  CHECK(run_group(copies, {.last = 3}).begun == std::vector<std::optional<std::uint64_t>>(3));
}

TEST_CASE("what was written to weights after a step is in its copies") {
  std::vector<sharded_copies> copies(2);
  auto example = images();
  auto life = [&](const auto& act) {
    on_members(2, [&](communicator& group) {
      auto model = materialized(example);
      FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = small_units});
      auto optimizer = sharded.make_optimizer(optim::Adam());
      act(*model, sharded, *optimizer, copies[static_cast<std::size_t>(group.rank())]);
    });
  };
  life([&](nn::Module& model, FullyShardedDataParallel& sharded, optim::optimizer_state& optimizer,
           auto& own) {
    std::vector<float> losses;
    run_sharded_passes(sharded, example, {.num_replicas = 2}, 0, losses);
    optimizer.apply(0);
    for (auto* each : model.parameters()) {
      each->wait_ready();
      each->value().fill_zero();
      each->mark_changed();
    }
    own.take(sharded, optimizer);
  });
  life([&](nn::Module&, FullyShardedDataParallel& sharded, optim::optimizer_state& optimizer, auto& own) {
    own.restore(sharded, optimizer);
    for (const auto& [name, value] : sharded.state_dict())
      if (name.find("running") == std::string::npos && !same_bits(value, tensor::zeros(value.shape())))
        throw std::runtime_error("expected zeros in " + name);
  });
}

TEST_CASE("copies of another model are refused, and it stays as it is") {
  std::vector<sharded_copies> copies(2);
  run_group(copies, {.num_replicas = 2, .last = 2});
  std::string told;
  std::mutex checking;
  on_members(2, [&](communicator& group) {
    auto model = materialized(images());
    FullyShardedDataParallel sharded(*model, group, {.unit_size_mb = small_units});
    auto optimizer = sharded.make_optimizer(optim::Adam());
    auto error =
        error_of([&] { copies[static_cast<std::size_t>(group.rank())].restore(sharded, *optimizer); });
    auto weights = sharded.state_dict();
    std::lock_guard lock(checking);
    told += error + "\n";
    CHECK(sharded.step() == 0);
    CHECK(same_bits(weights[0].value, materialized(images())->state_dict()[0].value));
  });
  CHECK_THAT(told, ContainsSubstring("expected copies of this model and optimizer, got none of"));
  on_grid(2, 2, [&](const auto& shards, const auto& others) {
    auto model = materialized(images());
    FullyShardedDataParallel sharded(*model, shards, others, {.unit_size_mb = small_units});
    auto optimizer = sharded.make_optimizer(optim::Adam());
    sharded_copies own;
    auto error = error_of([&] { own.take(sharded, *optimizer); });
    std::lock_guard lock(checking);
    CHECK_THAT(error, ContainsSubstring("expected a model that is divided once"));
  });
}

TEST_CASE("the newest complete state is found, and where its parts are") {
  CHECK_FALSE(newest_complete_state({}));
  CHECK_FALSE(newest_complete_state({{5, 2, 0, 0}, {4, 2, 1, 1}}));
  auto found = newest_complete_state({{5, 2, 0, 0}, {5, 2, 1, 0}, {6, 2, 0, 1}, {5, 2, 1, 1}});
  REQUIRE(found);
  CHECK(found->step == 5);
  CHECK(found->holders == std::vector<int>{0, 1});  // a member's own part is taken from it
  found = newest_complete_state({{7, 3, 0, 2}, {7, 3, 1, 0}, {7, 3, 2, 0}, {7, 3, 0, 1}});
  REQUIRE(found);
  CHECK(found->holders == std::vector<int>{2, 0, 0});
  found = newest_complete_state({{7, 1, 0, 1}, {7, 2, 0, 0}});  // of two numbers of parts one is complete
  REQUIRE(found);
  CHECK(found->holders == std::vector<int>{1});
}
