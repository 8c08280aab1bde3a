#include "troupe/data/data_loader.hpp"

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <condition_variable>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <ranges>
#include <set>
#include <thread>

#include "api/data/small_dataset.hpp"
#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/data/formats/npy_dataset.hpp"
#include "troupe/data/formats/npy_file.hpp"
#include "troupe/data/map_dataset.hpp"
#include "troupe/data/stream_dataset.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using troupe::testing::small_dataset;
using troupe::testing::temp_folder;

namespace {

/// Counts reads; a sample's label is its index. Sample `unreadable` cannot be read.
struct counted_dataset {
  dataset_ptr of(std::int64_t num_samples) {
    return map_dataset({num_samples, 1}, [this](std::int64_t index) {
      when_read(index);
      {
        std::lock_guard lock(mutex);
        ++num_reads;
        readers.insert(std::this_thread::get_id());
      }
      has_read.notify_all();
      if (index == unreadable.load()) throw std::runtime_error("the tape is torn");
      return labelled_samples{tensor::full({1}, static_cast<float>(index)),
                              tensor::from(std::vector<std::int64_t>{index}, {})};
    });
  }
  void wait_for_reads(int count) {
    std::unique_lock lock(mutex);
    has_read.wait(lock, [&] { return num_reads >= count; });
  }

  std::function<void(std::int64_t index)> when_read = [](auto) {};
  std::atomic<std::int64_t> unreadable = -1;
  std::mutex mutex;
  std::condition_variable has_read;
  int num_reads = 0;
  std::set<std::thread::id> readers;
};

std::vector<std::int64_t> labels_of(const labelled_samples& batch) {
  std::vector<std::int64_t> labels;
  if (batch.labels.dtype() == dtype::u8)
    for (auto label : batch.labels.values<std::uint8_t>()) labels.push_back(label);
  else
    for (auto label : batch.labels.values<std::int64_t>()) labels.push_back(label);
  return labels;
}

std::vector<std::int64_t> labels_of(DataLoader& loader) {
  std::vector<std::int64_t> all;
  for (auto& batch : loader)
    for (auto label : labels_of(batch)) all.push_back(label);
  return all;
}

std::set<std::int64_t> distinct(const std::vector<std::int64_t>& labels) {
  return {labels.begin(), labels.end()};
}

}  // namespace

static_assert(std::ranges::input_range<DataLoader>);

TEST_CASE("a loop takes each sample of an epoch once, with its label, and the next loop the next epoch") {
  DataLoader loader(small_dataset(24), {.batch = 4});
  CHECK(loader.num_batches() == 6);
  std::vector<std::int64_t> first, second;
  for (auto& [samples, labels] : loader) {
    CHECK(loader.epoch() == 0);
    CHECK(describe(samples) == "u8[4, 2]");
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(samples.values<std::uint8_t>()[2 * i] == labels.values<std::uint8_t>()[i]);
    for (auto label : labels.values<std::uint8_t>()) first.push_back(label);
  }
  CHECK(loader.epoch() == 1);
  second = labels_of(loader);
  CHECK(distinct(first).size() == 24);
  CHECK(distinct(second).size() == 24);
  CHECK(first != second);
  CHECK(loader.epoch() == 2);
  loader.begin_epoch(0);
  CHECK(labels_of(loader) == first);
}

TEST_CASE("batches are the same in any number of threads, which read a bounded number ahead") {
  DataLoader plain(small_dataset(200), {.batch = 3, .drop_last = false, .num_workers = 0});
  auto expected = labels_of(plain);
  auto workers = GENERATE(1, 2, 5);
  for (std::int64_t prefetch : {1, 2, 7}) {
    DataLoader loader(small_dataset(200),
                      {.batch = 3, .drop_last = false, .num_workers = workers, .prefetch = prefetch});
    CHECK(labels_of(loader) == expected);
  }
}

TEST_CASE("the shards of all replicas hold every sample once, in the order of the sampler") {
  for (auto streamed : {false, true}) {
    std::multiset<std::int64_t> seen;
    for (int replica = 0; replica < 3; ++replica) {
      auto samples = small_dataset(23);
      if (streamed) samples = stream_dataset({samples}, {.shuffle_buffer = 4});
      DataLoader loader(samples, {.batch = 3,
                                  .drop_last = false,
                                  .num_replicas = 3,
                                  .replica = replica,
                                  .tail = shard_tail::uneven});
      CHECK(loader.num_batches() == 3);
      for (auto label : labels_of(loader)) seen.insert(label);
    }
    CHECK(seen.size() == 23);
    CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == 23);
  }
}

TEST_CASE("a last, smaller batch is dropped or kept") {
  DataLoader dropped(small_dataset(10), {.batch = 4});
  CHECK(labels_of(dropped).size() == 8);
  DataLoader kept(small_dataset(10), {.batch = 4, .drop_last = false});
  CHECK(kept.num_batches() == 3);
  CHECK(distinct(labels_of(kept)).size() == 10);
}

TEST_CASE("an order of one's own decides which samples come, and how many") {
  DataLoader loader(small_dataset(10), {.batch = 2,
                                        .order =
                                            [](std::uint64_t epoch) {
                                              auto first = static_cast<std::int64_t>(epoch);
                                              return std::vector<std::int64_t>{first, 9, 9, first};
                                            },
                                        .samples_per_epoch = 4});
  CHECK(labels_of(loader) == std::vector<std::int64_t>{0, 9, 9, 0});
  CHECK(labels_of(loader) == std::vector<std::int64_t>{1, 9, 9, 1});
  DataLoader other(small_dataset(10),
                   {.batch = 2, .order = [](std::uint64_t) { return std::vector<std::int64_t>{1}; }});
  CHECK_THROWS_WITH(other.next(), ContainsSubstring("expected an order of 10 samples, got 1 in epoch 0"));
}

TEST_CASE("after a break the next loop goes on with the next batch of the epoch") {
  DataLoader loader(small_dataset(24), {.batch = 4, .num_workers = 2});
  std::vector<std::int64_t> taken;
  for (auto& batch : loader) {
    taken = labels_of(batch);
    break;
  }
  for (auto label : labels_of(loader)) taken.push_back(label);
  CHECK(taken.size() == 24);
  CHECK(distinct(taken).size() == 24);
  CHECK(loader.epoch() == 1);
}

TEST_CASE("a loader resumes at the exact sample from any position, also at the end of an epoch") {
  for (auto streamed : {false, true}) {
    auto samples = small_dataset(50);
    if (streamed) samples = stream_dataset({small_dataset(20), small_dataset(30)}, {.shuffle_buffer = 7});
    data_loader_options options{.batch = 4, .drop_last = false, .num_replicas = 2, .replica = 1};
    DataLoader whole(samples, options);
    std::vector<std::vector<std::int64_t>> batches;
    std::vector<data_position> positions{whole.position()};
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (auto& batch : whole) {
        batches.push_back(labels_of(batch));
        positions.push_back(whole.position());
      }
    }
    REQUIRE(batches.size() == 14);
    for (std::size_t taken = 0; taken < batches.size(); ++taken) {
      CAPTURE(streamed, taken);
      DataLoader resumed(samples, options);
      resumed.resume(data_position::from_tensor(positions[taken].to_tensor()));
      CHECK(resumed.position() == positions[taken]);
      auto next = resumed.next();
      // In the body of the last batch the epoch is not over: the resumed loop is empty.
      CHECK(next.has_value() == (taken != 7));
      if (!next) next = resumed.next();
      CHECK(labels_of(*next) == batches[taken]);
    }
  }
}

TEST_CASE("another number of replicas goes on where the others were, with each sample once") {
  std::multiset<std::int64_t> seen;
  data_position position;
  for (int replica = 0; replica < 4; ++replica) {
    DataLoader loader(small_dataset(60), {.batch = 3, .num_replicas = 4, .replica = replica});
    for (int i = 0; i < 2; ++i)
      for (auto label : labels_of(loader.next().value())) seen.insert(label);
    position = loader.position();
  }
  CHECK(position.samples_done == 24);
  for (int replica = 0; replica < 3; ++replica) {
    DataLoader loader(small_dataset(60), {.batch = 4, .num_replicas = 3, .replica = replica});
    loader.resume(position);
    for (auto label : labels_of(loader)) seen.insert(label);
  }
  CHECK(seen.size() == 60);
  CHECK(std::set<std::int64_t>(seen.begin(), seen.end()).size() == 60);
}

TEST_CASE("a position in other data is refused") {
  data_loader_options options{.batch = 2, .num_replicas = 2};
  DataLoader loader(small_dataset(50), options);
  loader.next();
  auto position = loader.position();
  auto refused = [&](const dataset_ptr& samples, const data_loader_options& other) {
    DataLoader resumed(samples, other);
    resumed.resume(position);
  };
  CHECK_NOTHROW(refused(small_dataset(50), options));
  CHECK_THROWS_WITH(refused(small_dataset(51), options),
                    ContainsSubstring("expected samples per epoch 51, found 50"));
  CHECK_THROWS_WITH(refused(small_dataset(50), {.batch = 2, .num_replicas = 2, .seed = 7}),
                    ContainsSubstring("expected seed 7, found 1"));
  CHECK_THROWS_AS(refused(small_dataset(50), {.batch = 2, .num_replicas = 2, .shuffle = false}), bad_input);
  CHECK_THROWS_AS(refused(stream_dataset({small_dataset(50)}), options), bad_input);
  CHECK_THROWS_WITH(data_position::from_tensor(tensor::zeros({8}, dtype::i64)),
                    ContainsSubstring("found version 0"));
  CHECK_THROWS_AS(data_position::from_tensor(tensor::zeros({8})), bad_input);
  for (std::size_t number : {1, 7}) {
    auto damaged = position.to_tensor();
    damaged.values<std::int64_t>()[number] = -1;
    CHECK_THROWS_AS(data_position::from_tensor(damaged), bad_input);
  }

  DataLoader stream(stream_dataset({small_dataset(50)}), options);
  stream.next();
  position = stream.position();
  CHECK_NOTHROW(refused(stream_dataset({small_dataset(50)}), options));
  CHECK_THROWS_WITH(refused(stream_dataset({small_dataset(50)}), {.batch = 2, .num_replicas = 3}),
                    ContainsSubstring("with as many replicas as before: expected 3, found 2"));
}

TEST_CASE("a position in a stream with another tail, or with files of other names, is refused") {
  data_loader_options options{.batch = 2, .num_replicas = 3, .replica = 1};
  auto stream = stream_dataset({small_dataset(20), small_dataset(30)}, {.shuffle_buffer = 7});
  DataLoader loader(stream, options);
  loader.next();
  auto position = loader.position();
  options.tail = shard_tail::drop;
  CHECK_THROWS_AS(DataLoader(stream, options).resume(position), bad_input);

  temp_folder folder;
  std::vector<dataset_ptr> files;
  for (const auto* name : {"a.npy", "b.npy"}) {
    write_npy(folder.path() / name, tensor::zeros({25, 1}));
    files.push_back(npy_dataset(folder.path() / name));
  }
  auto of = [&](std::size_t first) { return stream_dataset({files[first], files[1 - first]}); };
  auto in_files = DataLoader(of(0), options).position();
  CHECK_NOTHROW(DataLoader(of(0), options).resume(in_files));
  CHECK_THROWS_WITH(DataLoader(of(1), options).resume(in_files), ContainsSubstring("names of files"));
  auto in_one = DataLoader(files[0], options).position();
  CHECK_THROWS_AS(DataLoader(files[1], options).resume(in_one), bad_input);
}

TEST_CASE("after the last batch of an epoch of a stream another number of replicas goes on") {
  auto stream = stream_dataset({small_dataset(20), small_dataset(31)}, {.shuffle_buffer = 7});
  DataLoader loader(stream, {.batch = 4, .num_replicas = 2});
  data_position position;
  for (auto& batch : loader) {
    CHECK(labels_of(batch).size() == 4);
    position = loader.position();
  }
  CHECK(position.samples_done == 51);
  DataLoader other(stream, {.batch = 4, .num_replicas = 3});
  other.resume(position);
  CHECK(!other.next());
  CHECK(other.epoch() == 1);
  CHECK(labels_of(other).size() == 16);
}

TEST_CASE("a batch as large as numbers go takes the whole shard") {
  DataLoader loader(
      small_dataset(10),
      {.batch = std::numeric_limits<std::int64_t>::max(), .drop_last = false, .num_replicas = 2});
  CHECK(loader.num_batches() == 1);
  CHECK(labels_of(*loader.next()).size() == 5);
  CHECK(loader.position().samples_done == 10);
}

TEST_CASE("batches are read on other threads while the loop's body runs, and no more than are to be ahead") {
  constexpr int ahead = 4;
  std::atomic<std::int64_t> num_asked_for = 0, num_too_early = 0;
  counted_dataset counted;
  counted.when_read = [&](std::int64_t batch) { num_too_early += batch >= num_asked_for + ahead; };
  DataLoader loader(counted.of(60), {.num_workers = 3, .prefetch = ahead, .shuffle = false});
  for (int taken = 1; taken <= 60; ++taken) {
    ++num_asked_for;
    REQUIRE(loader.next().has_value());
    // All that may be ahead is read without another call; a loader without a limit reads on meanwhile.
    counted.wait_for_reads(std::min(taken + ahead, 60));
  }
  CHECK(num_too_early == 0);
  std::lock_guard lock(counted.mutex);
  CHECK(!counted.readers.contains(std::this_thread::get_id()));
}

TEST_CASE("without workers the loop's thread reads what it takes") {
  counted_dataset counted;
  DataLoader loader(counted.of(60), {.batch = 2, .num_workers = 0});
  loader.next();
  CHECK(counted.num_reads == 2);
  CHECK(counted.readers == std::set{std::this_thread::get_id()});
}

TEST_CASE("a loader that is destroyed within an epoch reads no more than what has begun") {
  counted_dataset counted;
  {
    DataLoader loader(counted.of(1000), {.batch = 1, .num_workers = 2, .prefetch = 3});
    for (auto& batch : loader) {
      CHECK(labels_of(batch).size() == 1);
      break;
    }
  }
  CHECK(counted.num_reads <= 1 + 3);
}

TEST_CASE("a sample that cannot be read is named where its batch comes, and that batch may be tried again") {
  for (int workers : {0, 1, 3}) {
    counted_dataset counted;
    auto samples = counted.of(20);
    counted.unreadable = 11;
    DataLoader loader(samples, {.batch = 4, .num_workers = workers, .shuffle = false});
    std::vector<std::int64_t> taken;
    auto take_all = [&] {
      for (auto& batch : loader)
        for (auto label : labels_of(batch)) taken.push_back(label);
    };
    try {
      take_all();
      FAIL("no exception");
    } catch (const data_error& problem) {
      CHECK(problem.sample() == 11);
      CHECK_THAT(problem.what(),
                 ContainsSubstring("cannot read sample 11 (batch 2 of epoch 0): the tape is torn"));
      CHECK_THROWS_WITH(std::rethrow_if_nested(problem), ContainsSubstring("the tape is torn"));
    }
    CHECK(taken.size() == 8);
    CHECK(loader.position().samples_done == 8);
    counted.unreadable = -1;
    take_all();
    CHECK(taken.size() == 20);
    CHECK(distinct(taken).size() == 20);
  }
}

TEST_CASE("an exception in the loop's body leaves the loader at the next batch") {
  DataLoader loader(small_dataset(12), {.batch = 4});
  std::vector<std::int64_t> taken;
  try {
    for (auto& batch : loader) {
      taken = labels_of(batch);
      throw std::runtime_error("diverged");
    }
  } catch (const std::runtime_error&) {
  }
  for (auto label : labels_of(loader)) taken.push_back(label);
  CHECK(distinct(taken).size() == 12);
}

TEST_CASE("loaders move, also within an epoch") {
  std::vector<DataLoader> loaders;
  loaders.emplace_back(small_dataset(12), data_loader_options{.batch = 4});
  loaders.front().next();
  auto moved = std::move(loaders.front());
  CHECK(labels_of(moved).size() == 8);
}

TEST_CASE("options out of range, and batches that no shard fills, are refused") {
  auto samples = small_dataset(10);
  CHECK_THROWS_AS(DataLoader(nullptr), std::invalid_argument);
  CHECK_THROWS_AS(DataLoader(samples, {.batch = 0}), std::invalid_argument);
  CHECK_THROWS_AS(DataLoader(samples, {.num_workers = -1}), std::invalid_argument);
  CHECK_THROWS_AS(DataLoader(samples, {.prefetch = 0}), std::invalid_argument);
  CHECK_THROWS_AS(DataLoader(samples, {.num_replicas = 2, .replica = 2}), std::invalid_argument);
  CHECK_THROWS_AS(DataLoader(samples, {.samples_per_epoch = 4}), std::invalid_argument);
  CHECK_THROWS_WITH(DataLoader(samples, {.tail = shard_tail::uneven}),
                    ContainsSubstring("drop_last = false"));
  CHECK_THROWS_WITH(DataLoader(samples, {.batch = 6, .num_replicas = 2}),
                    ContainsSubstring("a batch of at most a shard, 5, or drop_last = false, got 6"));
}
