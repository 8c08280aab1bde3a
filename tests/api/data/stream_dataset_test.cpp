#include "troupe/data/stream_dataset.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "api/data/small_dataset.hpp"
#include "support/bits.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

/// A shard of `count` samples from `first` on that notes whether its file would be open.
class noted_shard : public sample_reader {
 public:
  noted_shard(std::int64_t first, std::int64_t count) : first_(first), extents_{count, 1} {}
  const shape& sample_extents() const override { return extents_; }
  labelled_samples read(std::span<const std::int64_t> indices) override {
    is_open = true;
    while_reading();
    CHECK(is_open);
    std::vector<std::int64_t> labels;
    for (auto index : indices) labels.push_back(first_ + index);
    auto count = static_cast<std::int64_t>(labels.size());
    return {tensor::zeros({count, 1}), tensor::from(labels, {count})};
  }
  void will_read(std::int64_t first, std::int64_t count) override { wanted.emplace_back(first, count); }
  void close() override { is_open = false; }

  bool is_open = false;
  std::function<void()> while_reading = [] {};
  std::vector<std::pair<std::int64_t, std::int64_t>> wanted;

 private:
  std::int64_t first_;
  shape extents_;
};

struct noted_shards {
  explicit noted_shards(const std::vector<std::int64_t>& sizes) {
    std::int64_t first = 0;
    for (auto size : sizes) {
      readers.push_back(std::make_shared<noted_shard>(first, size));
      shards.push_back(std::make_shared<dataset>(readers.back()));
      first += size;
    }
  }
  std::vector<std::shared_ptr<noted_shard>> readers;
  std::vector<dataset_ptr> shards;
};

}  // namespace

TEST_CASE("the samples of all shards have indices that follow each other") {
  noted_shards noted({3, 0, 4, 2});
  auto stream = stream_dataset(noted.shards, {.shuffle_buffer = 5});
  CHECK(stream->sample_extents() == shape{9, 1});
  CHECK(stream->layout().shard_sizes == std::vector<std::int64_t>{3, 0, 4, 2});
  CHECK(stream->layout().shuffle_buffer == 5);
  auto read = stream->read(std::vector<std::int64_t>{8, 0, 3, 2, 7, 6});
  CHECK(same_bits(read.labels, tensor::from(std::vector<std::int64_t>{8, 0, 3, 2, 7, 6}, {6})));
  stream->reader()->will_read(2, 6);
  CHECK(noted.readers[0]->wanted == std::vector<std::pair<std::int64_t, std::int64_t>>{{2, 1}});
  CHECK(noted.readers[2]->wanted == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 4}});
  CHECK(noted.readers[3]->wanted == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}});
}

TEST_CASE("no more shards are open than are to be, the ones that were read last") {
  noted_shards noted(std::vector<std::int64_t>(10, 2));
  auto stream = stream_dataset(noted.shards, {.max_open_shards = 3});
  for (std::int64_t i : {0, 1, 2, 4, 0, 6, 18}) stream->read_rows(i, 1);
  std::vector<bool> open;
  for (const auto& reader : noted.readers) open.push_back(reader->is_open);
  CHECK(open == std::vector<bool>{true, false, false, true, false, false, false, false, false, true});
  stream->reader()->close();
  for (const auto& reader : noted.readers) CHECK(!reader->is_open);
}

TEST_CASE("a shard stays open while it is read, and is closed afterwards if too many are") {
  noted_shards noted({2, 2, 2});
  auto stream = stream_dataset(noted.shards, {.max_open_shards = 1});
  noted.readers[0]->while_reading = [&] {
    stream->read_rows(2, 1);  // as another thread would
    stream->read_rows(4, 1);
  };
  stream->read_rows(0, 1);
  CHECK(noted.readers[0]->is_open);
  CHECK(!noted.readers[1]->is_open);
  CHECK(!noted.readers[2]->is_open);
}

TEST_CASE("shards in memory are streamed too") {
  auto stream = stream_dataset({small_dataset(20), small_dataset(30)});
  auto read = stream->read(std::vector<std::int64_t>{19, 20});
  CHECK(read.labels.values<std::uint8_t>()[0] == 19);
  CHECK(read.labels.values<std::uint8_t>()[1] == 0);
  stream->reader()->will_read(0, 50);
}

TEST_CASE("shards of another dtype or labels are noticed where no batch has samples of both") {
  auto with = [](labelled_samples content) { return std::make_shared<dataset>(std::move(content)); };
  auto usual = with({tensor::zeros({4, 2}), tensor::zeros({4})});
  auto refuses = [&](labelled_samples content) {
    auto stream = stream_dataset({usual, with(std::move(content))});
    stream->read_rows(0, 4);
    CHECK_THROWS_WITH(stream->read_rows(4, 4), ContainsSubstring("expected samples of f32, labels f32[]"));
    CHECK_NOTHROW(stream->read_rows(0, 4));
  };
  refuses({tensor::zeros({4, 2}, dtype::u8), tensor::zeros({4})});
  refuses({tensor::zeros({4, 2}), tensor::zeros({4}, dtype::i64)});
  refuses({tensor::zeros({4, 2}), tensor::zeros({4, 3})});
  refuses({tensor::zeros({4, 2})});
}

TEST_CASE("shards that do not fit each other are refused") {
  auto with = [](labelled_samples content) { return std::make_shared<dataset>(std::move(content)); };
  std::vector<std::int64_t> from_both{0, 5};
  auto usual = with({tensor::zeros({4, 2}), tensor::zeros({4})});
  CHECK_NOTHROW(stream_dataset({usual, usual})->read(from_both));
  CHECK_THROWS_WITH(stream_dataset({usual, with({tensor::zeros({4, 3})})}),
                    ContainsSubstring("found [4, 3] in shard 1"));
  auto other_dtype = stream_dataset({usual, with({tensor::zeros({4, 2}, dtype::u8), tensor::zeros({4})})});
  CHECK_THROWS_WITH(other_dtype->read(from_both), ContainsSubstring("found u8[1, 2] in shard 1"));
  CHECK_THROWS_AS(stream_dataset({usual, with({tensor::zeros({4, 2})})})->read(from_both), bad_input);
  CHECK_THROWS_AS(stream_dataset({with({tensor::zeros({4, 2})}), usual})->read(from_both), bad_input);
  CHECK_THROWS_AS(stream_dataset({}), std::invalid_argument);
  CHECK_THROWS_AS(stream_dataset({usual, nullptr}), std::invalid_argument);
  CHECK_THROWS_AS(stream_dataset({usual}, {.shuffle_buffer = 0}), std::invalid_argument);
  CHECK_THROWS_AS(stream_dataset({usual}, {.max_open_shards = 0}), std::invalid_argument);
  auto loaded_later = std::make_shared<dataset>(shape{4, 2}, [] {
    return labelled_samples{tensor::zeros({4, 2}), tensor::zeros({4})};
  });
  CHECK_THROWS_WITH(stream_dataset({usual, loaded_later}),
                    ContainsSubstring("found shard 1, which is loaded"));
  loaded_later->load();
  CHECK_NOTHROW(stream_dataset({usual, loaded_later})->read(from_both));
}
