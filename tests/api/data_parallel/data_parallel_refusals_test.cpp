#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <mutex>

#include "api/data_parallel/replicated_model.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("models that differ are refused on every member, with rank, parameter and shapes") {
  std::vector<std::string> told(3);
  on_members(3, [&](communicator& group) {
    nn::Sequential model(nn::Linear(6, 4), nn::Linear(4, group.rank() == 2 ? 3 : 2));
    model.materialize(1);
    told[static_cast<std::size_t>(group.rank())] = error_of([&] { DataParallel(model, group); });
  });
  for (const auto& each : told)
    CHECK(each ==
          "[DataParallel] expected the same model and options on all ranks: rank 0 has 1.weight f32[2, 4], "
          "rank 2 has 1.weight f32[3, 4]");
}

TEST_CASE("models with more parameters, frozen ones or other options are refused too") {
  auto told = [](const std::function<void(int, nn::Sequential&, data_parallel_options&)>& differ) {
    std::vector<std::string> result(2);
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(6, 4));
      data_parallel_options options;
      if (group.rank() == 1) differ(1, model, options);
      model.materialize(1);
      result[static_cast<std::size_t>(group.rank())] = error_of([&] { DataParallel(model, group, options); });
    });
    CHECK(result[0] == result[1]);
    return result[0];
  };
  auto more = told([](int, nn::Sequential& model, auto&) { model.push_back(nn::Linear(4, 2)); });
  CHECK(more.find("rank 0 has no more parameters, rank 1 has 1.weight f32[2, 4]") != std::string::npos);
  auto frozen =
      told([](int, nn::Sequential& model, auto&) { model.parameters()[1]->requires_gradient = false; });
  CHECK(frozen.find("rank 0 has 0.bias f32[4], rank 1 has 0.bias f32[4], frozen") != std::string::npos);
  auto options = told([](int, auto&, data_parallel_options& own) { own.bucket_size_mb = 3; });
  CHECK(options.find("bucket_size_mb 3") != std::string::npos);
}

TEST_CASE("models whose modules differ in their modes are refused on every member") {
  using differ = std::function<void(nn::Sequential&)>;
  auto told = [](const differ& change) {
    std::vector<std::string> result(2);
    on_members(2, [&](communicator& group) {
      nn::Sequential model(nn::Linear(6, 4), nn::Sequential(nn::BatchNorm2d(4), nn::Dropout(0.5)));
      if (group.rank() == 1) change(model);
      model.materialize(1);
      result[static_cast<std::size_t>(group.rank())] = error_of([&] { DataParallel(model, group); });
    });
    CHECK(result[0] == result[1]);
    return result[0];
  };
  const std::string expected = "[DataParallel] expected the same model and options on all ranks: ";
  CHECK(told([](nn::Sequential& model) {
          model.each_child([](const std::string& name, nn::Module& child) {
            if (name == "1")
              child.each_child([](const std::string& at, nn::Module& inner) {
                if (at == "0") inner.eval();
              });
          });
        }) == expected +
                  "rank 0 has the module 1.0 in training mode, rank 1 has the module 1.0 in evaluation mode");
  CHECK(told([](nn::Sequential& model) { model.eval(); }) ==
        expected + "rank 0 has the model in training mode, rank 1 has the model in evaluation mode");
  CHECK(told([](nn::Sequential& model) { model.push_back(nn::Dropout(0.5)); }) ==
        expected + "rank 0 has no more modules, rank 1 has the module 2 in training mode");
  CHECK(told([](nn::Sequential&) {}) == "no error");
}

TEST_CASE("a loss that is no scalar is refused") {
  on_members(1, [](communicator& group) {
    auto model = small_model();
    DataParallel replicated(model, group);
    auto output = replicated.forward({batch_of(0, 0).samples});
    CHECK(error_of([&] { replicated.backward(output); }) ==
          "[DataParallel::backward] expected a scalar, the mean loss of this replica, got f32[3, 5]");
  });
}

TEST_CASE("numbers of replicas that are none are refused") {
  on_members(2, [&](communicator& group) {
    auto model = small_model();
    auto negative = error_of([&] { DataParallel(model, group, {.num_replicas = -1}); }),
         too_many = error_of([&] { DataParallel(model, group, {.num_replicas = 40000}); });
    static std::mutex checking;
    std::lock_guard lock(checking);
    CHECK(negative == "[DataParallel] expected num_replicas >= 1, or 0 for one on each member, got -1");
    CHECK(too_many == "[DataParallel] expected 1 to 32767 virtual replicas, got 40000");
  });
}

TEST_CASE("a model without memory is refused by name") {
  on_members(1, [&](communicator& group) {
    nn::Sequential model(nn::Linear(2, 2));
    CHECK(error_of([&] { DataParallel(model, group); }).find("0.weight without memory") != std::string::npos);
  });
}

TEST_CASE("a job with replicas of a pipeline is refused before its processes meet") {
  struct {
    struct {
      int replicas = 2;
    } given;
    const auto& options() const { return given; }
    std::shared_ptr<communicator> default_group() {
      FAIL("the processes meet");
      return nullptr;
    }
  } world;
  auto model = small_model();
  CHECK_THROWS_MATCHES(DataParallel(model, world), bad_input,
                       Catch::Matchers::MessageMatches(
                           Catch::Matchers::StartsWith("--replicas 2 was given") &&
                           Catch::Matchers::ContainsSubstring("data_parallel_options::num_replicas")));
}
