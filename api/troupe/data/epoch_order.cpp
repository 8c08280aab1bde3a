#include "troupe/data/epoch_order.hpp"

#include <algorithm>
#include <numeric>

#include "troupe/error/errors.hpp"
#include "troupe/random/permutation.hpp"

namespace troupe {
namespace {

/// The last step of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014, figure 17).
std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

/// The stream of random numbers of a block; those of the shards are the epochs, which are small numbers.
std::uint64_t stream_of(std::uint64_t epoch, std::int64_t begin, std::int64_t block) {
  auto part = mixed(mixed(epoch + 1) + static_cast<std::uint64_t>(begin));
  return mixed(part + static_cast<std::uint64_t>(block)) | std::uint64_t{1} << 63;
}

std::vector<std::int64_t> numbers_below(std::size_t count) {
  std::vector<std::int64_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

void check_permutations(const epoch_order_options& options) {
  if (!options.shuffle || options.order) return;
  constexpr std::int64_t limit = std::int64_t{1} << 32;
  const auto& layout = options.layout;
  auto most = layout.is_stream() ? std::max(layout.shuffle_buffer, std::ssize(layout.shard_sizes))
                                 : options.num_samples;
  if (most >= limit)
    throw_invalid("epoch_order",
                  "fewer than 2^32 samples that are shuffled among themselves (use a stream_dataset, or a "
                  "smaller shuffle_buffer)",
                  std::to_string(most));
}

}  // namespace

epoch_order::epoch_order(epoch_order_options options)
    : options_(std::move(options)),
      begin_(options_.begin),
      end_(options_.end == 0 ? options_.num_samples : options_.end) {
  if (options_.num_samples < 1)
    throw_invalid("epoch_order", "at least one sample", std::to_string(options_.num_samples));
  auto& buffer = options_.layout.shuffle_buffer;
  buffer = std::min(buffer, options_.num_samples);
  check_permutations(options_);
  std::int64_t first = 0;
  for (auto size : options_.layout.shard_sizes) {
    first_of_shard_.push_back(first);
    first += size;
  }
}

std::int64_t epoch_order::at(std::uint64_t epoch, std::int64_t position) {
  if (epoch != epoch_) begin_epoch(epoch);
  if (options_.layout.is_stream() && !options_.order)
    return index_in_stream(options_.shuffle ? shuffled(position) : position);
  return order_.empty() ? position : order_[static_cast<std::size_t>(position)];
}

/// An epoch whose beginning throws is begun again.
void epoch_order::begin_epoch(std::uint64_t epoch) {
  epoch_.reset();
  if (options_.order) {
    auto order = options_.order(epoch);
    if (std::ssize(order) != options_.num_samples)
      throw_invalid("epoch_order", "an order of " + std::to_string(options_.num_samples) + " samples",
                    std::to_string(order.size()) + " in epoch " + std::to_string(epoch));
    order_ = std::move(order);
  } else if (options_.layout.is_stream()) {
    begin_stream(epoch);
  } else if (options_.shuffle) {
    order_ = permutation(options_.num_samples, options_.seed, epoch);
  }
  epoch_ = epoch;
}

void epoch_order::begin_stream(std::uint64_t epoch) {
  const auto& layout = options_.layout;
  auto num_shards = layout.shard_sizes.size();
  order_ = options_.shuffle ? permutation(static_cast<std::int64_t>(num_shards), options_.seed, epoch)
                            : numbers_below(num_shards);
  ends_.clear();
  std::int64_t end = 0;
  for (auto shard : order_) ends_.push_back(end += layout.shard_sizes[static_cast<std::size_t>(shard)]);
  blocks_ = {};
  auto random = mixed(stream_of(epoch, begin_, -1) ^ options_.seed);
  first_block_size_ =
      1 + static_cast<std::int64_t>(random % static_cast<std::uint64_t>(layout.shuffle_buffer));
}

std::size_t epoch_order::place_of(std::int64_t position) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(ends_, position) - ends_.begin());
}

/// The index of sample `position` of the shards put one after the other, the `place`-th of which it is in.
std::int64_t epoch_order::index_of(std::int64_t position, std::size_t place) const {
  auto shard = static_cast<std::size_t>(order_[place]);
  return first_of_shard_[shard] + position - (ends_[place] - options_.layout.shard_sizes[shard]);
}

std::int64_t epoch_order::index_in_stream(std::int64_t position) const {
  auto at = (begin_ + position) % options_.num_samples;
  return index_of(at, place_of(at));
}

std::int64_t epoch_order::shuffled(std::int64_t position) {
  if (options_.layout.shuffle_buffer == 1) return position;
  const auto& in = block_at(position);
  return in.first + in.order[static_cast<std::size_t>(position - in.first)];
}

const epoch_order::block& epoch_order::block_at(std::int64_t position) {
  auto buffer = options_.layout.shuffle_buffer;
  auto number = position < first_block_size_ ? 0 : 1 + (position - first_block_size_) / buffer;
  auto& found = blocks_[static_cast<std::size_t>(number % 2)];
  if (found.number == number) return found;
  bool follows = blocks_[static_cast<std::size_t>((number + 1) % 2)].number == number - 1 && number > 0;
  found.number = -1;  // until it is complete
  found.first = first_of_block(number);
  found.order = permutation(first_of_block(number + 1) - found.first, options_.seed,
                            stream_of(*epoch_, begin_, number));
  found.number = number;
  if (!follows) note_read_soon(number);
  note_read_soon(number + 1);
  return found;
}

/// Of the block after the last one: the end.
std::int64_t epoch_order::first_of_block(std::int64_t number) const {
  if (number == 0) return 0;
  return std::min(first_block_size_ + (number - 1) * options_.layout.shuffle_buffer, size());
}

void epoch_order::note_read_soon(std::int64_t block) {
  for (auto first = first_of_block(block), last = first_of_block(block + 1); first < last;) {
    auto at = (begin_ + first) % options_.num_samples;
    auto place = place_of(at);
    auto count = std::min(last - first, ends_[place] - at);
    read_soon_.push_back({index_of(at, place), count});
    first += count;
  }
}

void hint(sample_reader* reader, const std::vector<sample_range>& read_soon) noexcept {
  if (reader == nullptr) return;
  try {
    for (const auto& range : read_soon) reader->will_read(range.first, range.count);
  } catch (...) {
    // See the header.
  }
}

}  // namespace troupe
