// Trainers in one process: what comes back of the model, what it begins with, how training is cancelled, and
// several of them in one World.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <set>

#include "api/replicas/replica_training.hpp"
#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/saved_weights.hpp"
#include "troupe/snapshot/weights_hash.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// With a norm, whose running means and variances are buffers.
nn::Sequential normed_model() {
  return nn::Sequential(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4), nn::Flatten(),
                        nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4));
}

Pipeline normed_pipeline(int stages, const nn::Sequential& model = normed_model()) {
  return Pipeline(model).stages(stages).microbatches(4).optimizer(optim::Adam({.lr = 0.01}));
}

/// 250 samples: the last batch of 32 is not whole.
dataset_ptr samples() { return four_corners(250); }

std::map<std::string, tensor> by_name(const std::vector<named_tensor>& tensors) {
  std::map<std::string, tensor> found;
  for (const auto& each : tensors) found.emplace(each.name, each.value);
  return found;
}

/// Parameters are those without "running".
std::string hash_of_parameters(std::vector<named_tensor> weights) {
  std::erase_if(weights,
                [](const named_tensor& each) { return each.name.find("running") != each.name.npos; });
  return weights_sha256(weights);
}

}  // namespace

TEST_CASE("state_dict returns the whole model by name for every partition") {
  std::vector<named_tensor> whole;
  for (int stages : {1, 2, 3}) {
    Trainer trainer(World::local(stages, options_of(12)), normed_pipeline(stages));
    trainer.fit(samples());
    auto weights = trainer.state_dict();
    CHECK(std::ranges::is_sorted(weights, {}, &named_tensor::name));
    CHECK(hash_of_parameters(weights) == trainer.weights_sha256());
    if (whole.empty()) whole = weights;
    CHECK(same_bits(weights, whole));
  }
  auto found = by_name(whole);
  CHECK(found.size() == 10);
  REQUIRE(found.contains("2.running_mean"));
  CHECK_FALSE(same_bits(found.at("2.running_mean"), tensor::zeros({4})));
  // The model takes it back.
  auto model = normed_model();
  model.materialize(99);
  model.load_state_dict(whole);
  CHECK(same_bits(by_name(model.state_dict()).at("5.weight"), found.at("5.weight")));
}

TEST_CASE("state_dict returns copies: changing them does not change the model") {
  Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2));
  trainer.fit(samples());
  auto before = trainer.weights_sha256();
  for (auto& each : trainer.state_dict()) each.value.fill_zero();
  CHECK(trainer.weights_sha256() == before);
  CHECK(hash_of_parameters(trainer.state_dict()) == before);
}

TEST_CASE("predictions are the model's outputs in the order of the samples, and need no labels") {
  auto all = samples();
  Trainer trainer(World::local(2, options_of(40)), normed_pipeline(2));
  trainer.fit(all);
  auto outputs = trainer.predict(std::make_shared<dataset>(labelled_samples{all->samples()}));
  REQUIRE(outputs.shape() == shape{250, 4});
  CHECK(same_bits(outputs, trainer.predict(all)));
  auto model = normed_model();
  model.materialize(0);
  model.load_state_dict(trainer.state_dict());
  model.eval();
  auto expected = model({all->samples()}).value;
  std::int64_t num_correct = 0;
  for (std::int64_t row = 0; row < 250; ++row) {
    const auto* of = outputs.values<float>().data() + row * 4;
    for (int i = 0; i < 4; ++i)
      CHECK(std::abs(of[i] - expected.values<float>()[static_cast<std::size_t>(row * 4 + i)]) < 1e-4F);
    num_correct += std::max_element(of, of + 4) - of == row % 4;
  }
  CHECK(static_cast<double>(num_correct) / 250 == trainer.evaluate(all).accuracy);
}

TEST_CASE("a data set in files trains and predicts as the same one in memory") {
  temp_folder folder;
  auto whole = samples();
  write_npy(folder.path() / "samples.npy", whole->samples());
  write_npy(folder.path() / "labels.npy", whole->labels());
  auto parts = npy_dataset(folder.path() / "samples.npy", folder.path() / "labels.npy");
  std::map<dataset_ptr, std::string> weights;
  std::map<dataset_ptr, double> losses;
  std::map<dataset_ptr, tensor> outputs;
  for (const auto& data : {whole, parts}) {
    Trainer trainer(World::local(2, options_of(20)), normed_pipeline(2));
    trainer.fit(data);
    weights[data] = trainer.weights_sha256();
    losses[data] = trainer.evaluate(data).loss;
    outputs[data] = trainer.predict(data);
  }
  CHECK(weights[whole] == weights[parts]);
  CHECK(losses[whole] == losses[parts]);
  CHECK(same_bits(outputs[whole], outputs[parts]));
}

TEST_CASE("a stream trains to the same weights on any number of devices") {
  auto stream =
      stream_dataset({four_corners(100), four_corners(57), four_corners(93)}, {.shuffle_buffer = 30});
  std::set<std::string> weights;
  for (int stages : {1, 3}) {
    Trainer trainer(World::local(stages, options_of(20)), normed_pipeline(stages));
    trainer.fit(stream);
    weights.insert(trainer.weights_sha256());
  }
  CHECK(weights.size() == 1);
}

TEST_CASE("samples without labels are refused for training and evaluation") {
  auto unlabelled = std::make_shared<dataset>(labelled_samples{samples()->samples()});
  Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2));
  CHECK_THROWS_AS(trainer.fit(unlabelled), bad_input);
  CHECK_THROWS_MATCHES(trainer.evaluate(unlabelled), bad_input,
                       MessageMatches(ContainsSubstring("labels") && ContainsSubstring("predictions")));
}

TEST_CASE("a saved model is loaded into other stages and predicts the same bits") {
  temp_folder folder;
  auto file = folder.path() / "model.safetensors";
  tensor outputs;
  {
    Trainer trainer(World::local(2, options_of(20)), normed_pipeline(2));
    trainer.fit(samples());
    trainer.save(file);
    trainer.save(file);  // over the one that is there
    outputs = trainer.predict(samples());
    CHECK(same_bits(read_weights(file), trainer.state_dict()));
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  auto several = folder.path() / "several" / "model.safetensors.index.json";
  std::filesystem::create_directory(several.parent_path());
  {
    Trainer trainer(World::local(1, options_of(20)), normed_pipeline(1).initial_weights(read_weights(file)));
    trainer.save(several, 64);
    CHECK_THROWS_AS(trainer.save(several, 0), bad_input);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(several.parent_path()), {}) > 2);
  CHECK(std::ranges::is_permutation(read_weights(several.parent_path()), read_weights(file),
                                    [](const named_tensor& a, const named_tensor& b) {
                                      return a.name == b.name && same_bits(a.value, b.value);
                                    }));
  Trainer loaded(World::local(3, options_of(20)), normed_pipeline(3).initial_weights(read_weights(file)));
  CHECK(same_bits(loaded.predict(samples()), outputs));
}

TEST_CASE("initial weights in bf16 and f16 are those converted to f32") {
  auto model = normed_model();
  model.materialize(8);
  std::set<std::string> learned;
  for (const auto& each : model.named_parameters()) learned.insert(each.name);
  for (auto type : {dtype::bf16, dtype::f16}) {
    std::vector<named_tensor> narrow, widened;
    for (const auto& [name, value] : model.state_dict()) {
      narrow.push_back({name, cast(value, type)});
      if (learned.contains(name)) widened.push_back({name, cast(narrow.back().value, dtype::f32)});
    }
    temp_folder folder;
    auto file = folder.path() / "model.safetensors";
    write_safetensors(file, narrow);
    Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2).initial_weights(read_weights(file)));
    CHECK(trainer.weights_sha256() == weights_sha256(widened));
  }
}

TEST_CASE("a model all of whose parameters are frozen is evaluated, and refused where it would be trained") {
  auto model = normed_model();
  for (const auto& each : model.named_parameters()) each.target->requires_gradient = false;
  CHECK(model.num_trainable_parameters() == 0);
  {
    Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2, model));
    CHECK(trainer.evaluate(samples()).num_samples == 250);
    CHECK_THROWS_MATCHES(trainer.fit(samples()), bad_input,
                         MessageMatches(ContainsSubstring("parameters of the model are frozen")));
  }
  {
    Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2, model));
    batch given{tensor::zeros({8, 2}), tensor::zeros({8}, dtype::i64)};
    CHECK_THROWS_MATCHES(trainer.forward_backward(given), bad_input,
                         MessageMatches(ContainsSubstring("parameters of the model are frozen")));
  }
  model.named_parameters()[0].target->requires_gradient = true;
  Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2, model));
  CHECK(trainer.fit(samples()).steps == 4);
}

TEST_CASE("save refuses a file that cannot be written, and training continues") {
  temp_folder folder;
  Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2));
  trainer.fit(samples());
  CHECK_THROWS_MATCHES(trainer.save(folder.path() / "none" / "model"), bad_input,
                       MessageMatches(ContainsSubstring("there is no folder")));
  CHECK_THROWS_MATCHES(trainer.save("/dev/null"), bad_input, MessageMatches(ContainsSubstring("a device")));
  CHECK_THROWS_MATCHES(trainer.save(folder.path()), bad_input, MessageMatches(ContainsSubstring("a folder")));
  CHECK(trainer.fit(samples()).steps == 8);
  trainer.save(folder.path() / "model");
}

TEST_CASE("training cancelled by a callback keeps the state of the last step and continues from there") {
  std::uint64_t last_seen = 0;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event& event) {
    last_seen = event.step;
    if (event.step == 5) event.cancel();
  };
  Trainer trainer(World::local(2, options_of(1000)), normed_pipeline(2), callbacks);
  auto options = small_options();
  auto fitted = trainer.fit(four_corners(1 << 15));
  CHECK(fitted.steps >= 5);
  REQUIRE(fitted.steps < 100);
  CHECK(last_seen == fitted.steps);
  auto weights = trainer.state_dict();
  trainer.evaluate(samples());
  CHECK(same_bits(trainer.state_dict(), weights));

  Trainer reference(World::local(1, options_of(fitted.steps)), normed_pipeline(1));
  reference.fit(four_corners(1 << 15));
  CHECK(same_bits(reference.state_dict(), weights));
}

TEST_CASE("a call after a cancelled one does all its steps") {
  bool cancels = true;
  trainer_callbacks callbacks;
  callbacks.on_step = [&](const step_event& event) {
    if (cancels && event.step == 3) event.cancel();
  };
  Trainer trainer(World::local(2, options_of(30)), normed_pipeline(2), callbacks);
  auto data = four_corners(2048);
  auto first = trainer.fit(data).steps;
  REQUIRE(first < 30);
  cancels = false;
  CHECK(trainer.fit(data).steps == first + 30);
}

TEST_CASE("an exception after a cancel leaves fit once the training has ended") {
  trainer_callbacks callbacks;
  std::uint64_t num_heard = 0;
  callbacks.on_step = [&](const step_event& event) {
    ++num_heard;
    event.cancel();
    throw std::runtime_error("enough");
  };
  Trainer trainer(World::local(2, options_of(1000)), normed_pipeline(2), callbacks);
  CHECK_THROWS_MATCHES(trainer.fit(four_corners(1 << 15)), std::runtime_error,
                       MessageMatches(ContainsSubstring("enough")));
  CHECK(num_heard == 1);
  auto weights = trainer.state_dict();
  trainer.evaluate(samples());
  CHECK(same_bits(trainer.state_dict(), weights));
}

TEST_CASE("a model that was materialized or loaded begins with its weights, whatever the seed") {
  auto model = normed_model();
  model.materialize(7);
  auto changed = by_name(model.state_dict());
  changed.at("0.weight").values<float>()[3] = 0.625F;
  changed.at("2.running_mean").values<float>()[1] = 0.5F;
  Trainer trainer(World::local(2, options_of(4)), normed_pipeline(2, model));
  auto begun = by_name(trainer.state_dict());
  for (const auto& [name, value] : changed) CHECK(same_bits(begun.at(name), value));
  // What is done to the model later is nothing to the pipeline.
  changed.at("0.weight").fill_zero();
  CHECK(same_bits(by_name(trainer.state_dict()).at("0.weight"), begun.at("0.weight")));
}

TEST_CASE("a model that is only described begins with the seed's weights, and initial_weights comes first") {
  auto materialized = normed_model();
  materialized.materialize(small_options().seed);
  auto described = Trainer(World::local(2, options_of(4)), normed_pipeline(2)).weights_sha256();
  CHECK(Trainer(World::local(2, options_of(4)), normed_pipeline(2, materialized)).weights_sha256() ==
        described);
  auto other = normed_model();
  other.materialize(8);
  auto with = normed_pipeline(2, other).initial_weights(materialized.state_dict());
  CHECK(Trainer(World::local(2, options_of(4)), with).weights_sha256() == described);
}

TEST_CASE("a partly materialized model is refused with an example of each part") {
  auto model = normed_model();
  model[5]->materialize(1, "5.");
  CHECK_THROWS_MATCHES(Pipeline(model), bad_input,
                       MessageMatches(ContainsSubstring("5.") && ContainsSubstring("is not")));
}

TEST_CASE("Trainers of other models follow one another in a World, each with steps of its own") {
  auto alone = [](int stages, const nn::Sequential& model) {
    Trainer trainer(World::local(2, options_of(12)), normed_pipeline(stages, model));
    trainer.fit(samples());
    return trainer.weights_sha256();
  };
  nn::Sequential small(nn::Linear(2, 8), nn::ReLU(), nn::Linear(8, 4));
  auto expected_first = alone(2, normed_model()), expected_second = alone(2, small);
  auto world = World::local(2, options_of(12));
  {
    Trainer trainer(world, normed_pipeline(2));
    trainer.fit(samples());
    trainer.evaluate(samples());
    CHECK(trainer.weights_sha256() == expected_first);
  }
  for (int round = 0; round < 2; ++round) {
    Trainer trainer(world, normed_pipeline(2, small));
    CHECK(trainer.fit(samples()).steps == 12);
    CHECK(trainer.weights_sha256() == expected_second);
  }
  Trainer trainer(world, normed_pipeline(3));
  trainer.fit(samples());
  CHECK(trainer.weights_sha256() == expected_first);
}

TEST_CASE("a second Trainer beside the first one is refused, and the first one continues") {
  auto world = World::local(2, options_of(4));
  Trainer first(world, normed_pipeline(2));
  CHECK_THROWS_MATCHES(Trainer(world, normed_pipeline(2)), std::logic_error,
                       MessageMatches(ContainsSubstring("one Trainer at a time")));
  CHECK(first.fit(samples()).steps == 4);
}

TEST_CASE("each Trainer of a World has a snapshot folder of its own, and resumes from that") {
  temp_folder folder;
  auto options = options_of(6);
  options.snapshot_dir = folder.path() / "snapshots";
  nn::Sequential small(nn::Linear(2, 8), nn::ReLU(), nn::Linear(8, 4));
  std::vector<std::string> hashes;
  auto train_both = [&] {
    std::vector<std::string> found;
    std::vector<std::uint64_t> resumed;
    trainer_callbacks callbacks;
    callbacks.on_resumed = [&](const resume_event& event) { resumed.push_back(event.step); };
    auto world = World::local(2, options);
    for (const auto& model : {normed_model(), small}) {
      Trainer trainer(world, normed_pipeline(2, model), callbacks);
      trainer.fit(samples());
      found.push_back(trainer.weights_sha256());
    }
    if (hashes.empty()) hashes = found;
    CHECK(found == hashes);
    return resumed;
  };
  CHECK(train_both().empty());
  CHECK(std::filesystem::exists(options.snapshot_dir / "trainer-2" / "step-000000000006"));
  CHECK_THROWS_AS(train_both(), bad_input);  // the folder is not empty
  options.resume = true;
  CHECK(train_both() == std::vector<std::uint64_t>{6, 6});
}

TEST_CASE("a job resumes within a fit of as many samples only") {
  temp_folder folder;
  auto options = options_of(3);
  options.snapshot_dir = folder.path() / "snapshots";
  auto train = [&](int num_samples) {
    Trainer trainer(World::local(1, options), normed_pipeline(1));
    trainer.fit(four_corners(num_samples));
    return trainer.weights_sha256();
  };
  train(250);
  options.steps = 6;
  options.resume = true;
  CHECK_THROWS_MATCHES(train(251), bad_input,
                       MessageMatches(ContainsSubstring("the snapshot of step 3") &&
                                      ContainsSubstring("expected 250 samples of [2], got 251 samples")));
  auto resumed = train(250);
  options.resume = false;
  options.snapshot_dir.clear();
  CHECK(resumed == train(250));
}

TEST_CASE("a job that resumes with other stages ends with the same bits") {
  auto train = [](job_options options, int stages) {
    auto world = World::local(stages, options);
    std::uint64_t from = 0;
    trainer_callbacks callbacks;
    callbacks.on_resumed = [&](const resume_event& event) { from = event.step; };
    Trainer trainer(world, normed_pipeline(stages, normed_model()), callbacks);
    trainer.fit(samples());
    return std::pair(trainer.weights_sha256(), from);
  };
  auto [expected, none] = train(options_of(6), 2);
  for (auto [first, second] : {std::pair(2, 3), {3, 1}, {1, 2}}) {
    INFO(first << " stages, then " << second);
    temp_folder folder;
    auto options = options_of(3);
    options.snapshot_dir = folder.path() / "snapshots";
    train(options, first);
    options.steps = 6;
    options.resume = true;
    auto [hash, from] = train(options, second);
    CHECK(from == 3);
    CHECK(hash == expected);
    // Nothing is left to do: the metrics of the last step come from the snapshot too.
    CHECK(train(options, first) == std::pair(expected, std::uint64_t{6}));
  }
}
