// Steps that the program makes itself: the bits of fit, and what is refused.
#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <stdexcept>

#include "api/replicas/replica_training.hpp"
#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/data/detail/given_batches.hpp"
#include "troupe/data/detail/training_source.hpp"
#include "troupe/tensor/memory.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

constexpr std::uint64_t num_manual_steps = 9;

nn::Sequential stepped_model() {
  return nn::Sequential(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4), nn::Flatten(),
                        nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4));
}

Pipeline stepped_pipeline(int stages, schedule_kind schedule = schedule_kind::one_f_one_b) {
  return Pipeline(stepped_model())
      .stages(stages)
      .microbatches(4)
      .schedule(schedule)
      .optimizer(optim::Adam({.lr = 0.01}));
}

/// The batch that fit takes for a step.
batch batch_of(std::uint64_t step) {
  static const auto source = detail::make_training_source(four_corners(250), {32, 4, small_options().seed});
  return source->at(step);
}

std::uint64_t make_step(Trainer& trainer, std::uint64_t step, std::vector<double>* losses = nullptr) {
  auto loss = trainer.forward_backward(batch_of(step));
  if (losses) losses->push_back(loss);
  return trainer.optimizer_step();
}

struct stepped_training {
  std::vector<named_tensor> state;
  std::vector<double> losses;
};

stepped_training by_fit(const Pipeline& of, int devices) {
  stepped_training result;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event& event) { result.losses.push_back(event.loss); };
  Trainer trainer(World::local(devices, options_of(num_manual_steps)), of, callbacks);
  trainer.fit(four_corners(250));
  result.state = trainer.state_dict();
  return result;
}

stepped_training by_steps(const Pipeline& of, int devices) {
  stepped_training result;
  Trainer trainer(World::local(devices, options_of(num_manual_steps)), of);
  for (std::uint64_t step = 0; step < num_manual_steps; ++step)
    CHECK(make_step(trainer, step, &result.losses) == step + 1);
  result.state = trainer.state_dict();
  return result;
}

auto says(const std::string& what) { return MessageMatches(ContainsSubstring(what)); }

}  // namespace

TEST_CASE("steps of one's own give the losses and the weights of fit, bit for bit") {
  auto expected = by_fit(stepped_pipeline(1), 1);
  REQUIRE(expected.losses.size() == num_manual_steps);
  auto check = [&](const Pipeline& of, int devices) {
    auto got = by_steps(of, devices);
    CHECK(got.losses == expected.losses);
    CHECK(same_bits(got.state, expected.state));
  };
  check(stepped_pipeline(1), 1);
  check(stepped_pipeline(3), 3);
  check(stepped_pipeline(4, schedule_kind::zb_v), 2);
}

TEST_CASE("clipped steps of one's own in f16 give the weights of fit, also where steps are skipped") {
  auto numbers = [](Pipeline of) {
    return of.precision(dtype::f16).loss_scale({.initial_scale = 268435456}).clip_grad_norm(0.5);
  };
  auto expected = by_fit(numbers(stepped_pipeline(1)), 1);
  CHECK(same_bits(by_steps(numbers(stepped_pipeline(3)), 3).state, expected.state));
}

TEST_CASE("steps of one's own go on after fit and before it, beside evaluations") {
  auto all = four_corners(250);
  auto expected = by_fit(stepped_pipeline(2), 2);
  Trainer trainer(World::local(2, options_of(3)), stepped_pipeline(2));
  make_step(trainer, 0);
  CHECK(make_step(trainer, 1) == 2);
  trainer.evaluate(all);
  CHECK(trainer.fit(all).steps == 5);
  auto outputs = trainer.predict(all);
  for (std::uint64_t step = 5; step < num_manual_steps; ++step) make_step(trainer, step);
  CHECK_FALSE(same_bits(trainer.predict(all), outputs));
  CHECK(same_bits(trainer.state_dict(), expected.state));
}

namespace {

/// Up to rounding: how a product is computed, and so its bits, may depend on its number of rows.
bool are_close(const tensor& got, const tensor& expected) {
  auto close = [](float one, float other) { return std::abs(one - other) <= 1e-5F * (1 + std::abs(other)); };
  return got.shape() == expected.shape() &&
         std::ranges::equal(got.values<float>(), expected.values<float>(), close);
}

}  // namespace

TEST_CASE("forward gives the outputs of each batch in evaluation mode, of any size, without targets") {
  auto all = four_corners(250);
  Trainer trainer(World::local(2, options_of(num_manual_steps)), stepped_pipeline(2));
  make_step(trainer, 0);
  auto outputs = trainer.predict(all);
  for (std::int64_t first : {0, 7, 100})
    for (std::int64_t count : {1, 13, 64})
      CHECK(are_close(trainer.forward({all->samples().rows(first, count), {}}), outputs.rows(first, count)));
}

TEST_CASE("a batch that cannot be used is refused with what to do, and the job can go on") {
  auto good = batch_of(0);
  Trainer trainer(World::local(2, options_of(num_manual_steps)), stepped_pipeline(2));
  auto refused = [&](const batch& given, const std::string& what) {
    CHECK_THROWS_MATCHES(trainer.forward_backward(given), bad_input, says(what));
  };
  refused({}, "expected samples [N, ...], got undefined");
  refused({good.inputs.rows(0, 0), good.targets}, "expected samples [N, ...], got f32[0, 2]");
  refused({good.inputs, {}}, "expected targets for 32 samples, got none");
  refused({good.inputs, good.targets.rows(0, 16)}, "expected targets for 32 samples, got u8[16]");
  refused({good.inputs.rows(0, 30), good.targets.rows(0, 30)}, "expected a multiple of 4 samples, got 30");
  CHECK_THROWS_MATCHES(trainer.forward({}), bad_input, says("expected samples [N, ...], got undefined"));
  CHECK(make_step(trainer, 0) == 1);
}

TEST_CASE("between forward_backward and optimizer_step other calls are refused, and change nothing") {
  auto all = four_corners(250);
  Trainer trainer(World::local(2, options_of(num_manual_steps)), stepped_pipeline(2));
  CHECK_THROWS_MATCHES(trainer.optimizer_step(), std::logic_error, says("expected forward_backward first"));
  trainer.forward_backward(batch_of(0));
  CHECK_THROWS_MATCHES(trainer.forward_backward(batch_of(1)), std::logic_error, says("more microbatches"));
  auto refused = [](const auto& call) {
    CHECK_THROWS_MATCHES(call(), std::logic_error, says("expected optimizer_step first"));
  };
  refused([&] { trainer.fit(all); });
  refused([&] { trainer.evaluate(all); });
  refused([&] { trainer.predict(all); });
  refused([&] { trainer.forward(batch_of(0)); });
  refused([&] { trainer.state_dict(); });
  refused([&] { trainer.weights_sha256(); });
  refused([&] { trainer.save("/no/such/folder/file"); });
  CHECK(trainer.optimizer_step() == 1);
  for (std::uint64_t step = 1; step < num_manual_steps; ++step) make_step(trainer, step);
  CHECK(same_bits(trainer.state_dict(), by_fit(stepped_pipeline(2), 2).state));
}

TEST_CASE("a Trainer may end within a step, and the next one begins anew") {
  auto world = World::local(2, options_of(num_manual_steps));
  {
    Trainer first(world, stepped_pipeline(2));
    first.forward_backward(batch_of(0));
  }
  Trainer second(world, stepped_pipeline(2));
  for (std::uint64_t step = 0; step < num_manual_steps; ++step) make_step(second, step);
  CHECK(same_bits(second.state_dict(), by_fit(stepped_pipeline(2), 2).state));
}

TEST_CASE("a fit of other data begins with their first epoch, and one of the same data goes on") {
  auto whole = four_corners(250), part = four_corners(180);
  Trainer fitted(World::local(1, options_of(num_manual_steps)), stepped_pipeline(1));
  for (const auto& samples : {whole, part, whole}) fitted.fit(samples);

  Trainer stepped(World::local(1, options_of(num_manual_steps)), stepped_pipeline(1));
  auto batches_of = [&](const dataset_ptr& samples, std::uint64_t first) {
    auto source = detail::make_training_source(samples, {32, 4, small_options().seed});
    for (auto step = first; step < first + num_manual_steps; ++step) {
      stepped.forward_backward(source->at(step));
      stepped.optimizer_step();
    }
  };
  batches_of(whole, 0);
  batches_of(part, 0);  // five batches an epoch, of which nine steps are no multiple
  batches_of(whole, num_manual_steps);
  CHECK(fitted.weights_sha256() == stepped.weights_sha256());
}

TEST_CASE("a job of one's own steps resumes: the calls that its snapshot has return what they did") {
  temp_folder folder;
  auto options = options_of(num_manual_steps);
  options.snapshot_dir = folder.path();
  options.disk_every = 3;
  {
    Trainer trainer(World::local(2, options), stepped_pipeline(2));
    for (std::uint64_t step = 0; step < 7; ++step) make_step(trainer, step);
    // Batches and snapshots are made beside each other; this one is on disk when the call returns.
    trainer.fit(four_corners(250));
  }
  options.resume = true;
  Trainer trainer(World::local(2, options), stepped_pipeline(2));
  for (std::uint64_t step = 0; step < 7; ++step) CHECK(make_step(trainer, step) == step + 1);
  // These were steps of fit: from here on the state is the snapshot's.
  for (std::uint64_t step = 7; step < 16; ++step) CHECK(make_step(trainer, step) == 16);
  CHECK(make_step(trainer, 16) == 17);
}

TEST_CASE("a device that fails in a step of one's own is started again, and repeats it with the same bits") {
  auto expected = by_fit(stepped_pipeline(2), 2).state;
  for (const char* point : {"forward", "backward", "apply"}) {
    INFO(point);
    auto options = options_of(num_manual_steps);
    options.fault = std::string(point) + ":fail@rank=0,step=6";
    options.snapshot_every = 4;
    Trainer trainer(World::local(2, options), stepped_pipeline(2));
    for (std::uint64_t step = 0; step < num_manual_steps; ++step) make_step(trainer, step);
    CHECK(same_bits(trainer.state_dict(), expected));
  }
}

TEST_CASE("batches are let go when a later state is safe") {
  const batch large{tensor::zeros({8192, 2}), tensor::zeros({8192}, dtype::u8)};
  Trainer trainer(World::local(1, options_of(num_manual_steps)), stepped_pipeline(1));
  auto make = [&] {
    trainer.forward_backward(large);
    trainer.optimizer_step();
  };
  make();
  auto size = large.inputs.size_bytes(), before = memory_of({}).current;
  bool is_let_go = false;
  // The loader has four of them. Copies of the state are safe a while later.
  for (int step = 2; step < 1000 && !is_let_go; ++step) {
    make();
    is_let_go = step > 20 && memory_of({}).current < before + 10 * size;
  }
  CHECK(is_let_go);
}

TEST_CASE("copies of given batches are kept until they are released, and one that is needed again is named") {
  detail::given_batches kept;
  for (std::uint64_t step = 0; step < 4; ++step) {
    auto given = batch_of(step);
    kept.put(step, given);
    given.inputs.fill_zero();  // a loop may fill the same tensors again
    given.targets.fill_zero();
  }
  CHECK(kept.size_bytes() == 4U * (32 * 2 * 4 + 32));
  CHECK(same_bits(kept.at(2).inputs, batch_of(2).inputs));
  kept.release_before(2);
  kept.release_before(1);
  CHECK(kept.size_bytes() == 2U * (32 * 2 * 4 + 32));
  CHECK(same_bits(kept.at(2).targets, batch_of(2).targets));
  CHECK_THROWS_MATCHES(kept.at(1), bad_input, says("goes back to step 2,"));
  kept.put(1, batch_of(1));  // as a process that was started again gives it
  CHECK(kept.size_bytes() == 2U * (32 * 2 * 4 + 32));
}

namespace {

/// Bytes in files of this process that have no name, in the folder for temporary files.
std::uint64_t bytes_in_unnamed_files() {
  std::uint64_t sum = 0;
  auto folder = std::filesystem::temp_directory_path().lexically_normal().string();
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code problem;
    auto file = std::filesystem::read_symlink(each.path(), problem).string();
    struct stat found {};
    if (problem || !file.starts_with(folder) || ::stat(each.path().c_str(), &found) != 0) continue;
    if (S_ISREG(found.st_mode) && found.st_nlink == 0) sum += static_cast<std::uint64_t>(found.st_size);
  }
  return sum;
}

/// The most that the files of the log of calls have after any of so many steps of one's own.
std::uint64_t most_kept_of(int steps, std::uint64_t snapshot_every,
                           const std::filesystem::path& snapshot_dir = {}) {
  auto options = options_of(0);
  options.snapshot_dir = snapshot_dir;
  options.snapshot_every = snapshot_every;
  Trainer trainer(World::local(2, options), stepped_pipeline(2));
  std::uint64_t before = bytes_in_unnamed_files(), most = 0;
  for (int step = 0; step < steps; ++step) {
    make_step(trainer, static_cast<std::uint64_t>(step) % num_manual_steps);
    if (step % 100 == 99) {
      trainer.evaluate(four_corners(32));
      most = std::max(most, bytes_in_unnamed_files() - before);
    }
  }
  return most;
}

}  // namespace

TEST_CASE("many steps of one's own leave nothing on disk where nobody can repeat them") {
  constexpr int many = 1500;  // a file begins with 256 calls
  CHECK(most_kept_of(many, 8) == 0);
  // With snapshots a later job repeats them, and they are kept: some 100 bytes a call.
  temp_folder folder;
  auto all = most_kept_of(many, 8, folder.path());
  CHECK(all > 2 * many * 20);
  // How many steps a recovery may repeat depends on the time that a copy of the state takes.
  CHECK(most_kept_of(many, 0) < all / 2);
}

TEST_CASE("a step that is skipped changes neither weights nor running statistics, however the model is cut") {
  auto bad = batch_of(2);
  bad.inputs = bad.inputs.clone();
  bad.inputs.values<float>()[0] = std::nanf("");
  std::vector<named_tensor> first;
  for (int stages : {1, 2, 3}) {
    auto options = options_of(num_manual_steps);
    options.on_non_finite = "skip";
    Trainer trainer(World::local(stages, options), stepped_pipeline(stages));
    make_step(trainer, 0);
    make_step(trainer, 1);
    auto before = trainer.state_dict();
    trainer.forward_backward(bad);
    CHECK(trainer.optimizer_step() == 3);
    CHECK(same_bits(trainer.state_dict(), before));
    make_step(trainer, 3);
    auto after = trainer.state_dict();
    CHECK_FALSE(same_bits(after, before));
    if (first.empty()) first = after;
    CHECK(same_bits(after, first));
    CHECK(std::isfinite(trainer.evaluate(four_corners(250)).loss));
  }
}

TEST_CASE("a loss that is not finite ends a job that makes its own steps, as it ends a fit") {
  auto precision = GENERATE(dtype::f32, dtype::f16);
  auto is_nan = std::make_shared<bool>(false);
  auto loss = [is_nan](const variable& output, const tensor& targets, double scale) {
    auto result = nn::CrossEntropy()(output, targets, scale);  // whose gradients stay finite
    if (*is_nan) result.loss_sum = std::nan("");
    return result;
  };
  for (int replicas : {1, 2}) {
    *is_nan = false;
    Trainer trainer(
        World::local(2, options_of(num_manual_steps)),
        stepped_pipeline(2).loss(loss).precision(precision).microbatches(4 / replicas).replicas(replicas));
    make_step(trainer, 0);
    *is_nan = true;
    CHECK(std::isnan(trainer.forward_backward(batch_of(1))));
    CHECK_THROWS_MATCHES(
        trainer.optimizer_step(), job_failed,
        MessageMatches(ContainsSubstring("step 2") && ContainsSubstring("the loss is infinite or NaN")));
  }
}

TEST_CASE("a loss that is a constant in a later batch ends the job with the reason") {
  bool is_constant = false;
  auto loss = [&is_constant](const variable& output, const tensor& targets, double scale) {
    auto result = nn::CrossEntropy()(output, targets, scale);
    if (is_constant) result.loss = detach(result.loss);
    return result;
  };
  Trainer trainer(World::local(1, options_of(num_manual_steps)), stepped_pipeline(1).loss(loss));
  make_step(trainer, 0);
  is_constant = true;
  CHECK_THROWS_MATCHES(trainer.forward_backward(batch_of(1)), job_failed,
                       MessageMatches(ContainsSubstring("got a constant")));
}

TEST_CASE("bad_input of a loss ends the job as bad input") {
  bool is_refused = false;
  auto loss = [&is_refused](const variable& output, const tensor& targets, double scale) {
    if (is_refused) throw bad_input("file 7 holds no labels");
    return nn::CrossEntropy()(output, targets, scale);
  };
  Trainer trainer(World::local(1, options_of(num_manual_steps)), stepped_pipeline(1).loss(loss));
  make_step(trainer, 0);
  is_refused = true;
  try {
    trainer.forward_backward(batch_of(1));
    FAIL("the loss threw");
  } catch (const job_failed& failure) {
    CHECK(failure.kind() == failure_kind::bad_input);
    CHECK_THAT(failure.what(), ContainsSubstring("file 7 holds no labels"));
  }
}

TEST_CASE("after a step in which the job failed each call says why") {
  auto bad = batch_of(0);
  bad.targets = tensor::from(std::vector<std::int64_t>(32, 9), {32});
  Trainer trainer(World::local(1, options_of(num_manual_steps)), stepped_pipeline(1));
  auto failed = MessageMatches(ContainsSubstring("expected labels in [0, 4), got 9"));
  CHECK_THROWS_MATCHES(trainer.forward_backward(bad), job_failed, failed);
  CHECK_THROWS_MATCHES(trainer.forward_backward(batch_of(1)), job_failed, failed);
  CHECK_THROWS_MATCHES(trainer.weights_sha256(), job_failed, failed);
}

TEST_CASE("an optimizer that makes no state is refused with the reason") {
  auto none = [](const std::vector<named_parameter>&) -> std::unique_ptr<optim::optimizer_state> {
    return {};
  };
  auto tried = [&] {
    Trainer trainer(World::local(1, options_of(num_manual_steps)), stepped_pipeline(1).optimizer(none));
    make_step(trainer, 0);
  };
  CHECK_THROWS_WITH(tried(), ContainsSubstring("the optimizer: expected a function that returns"));
}

TEST_CASE("a Trainer that is refused leaves a World of one process to the next one") {
  auto world = World::local(1, options_of(num_manual_steps));
  CHECK_THROWS_AS(Trainer(world, stepped_pipeline(1).microbatches(3)), bad_input);
  Trainer trainer(world, stepped_pipeline(1));
  CHECK(make_step(trainer, 0) == 1);
}
