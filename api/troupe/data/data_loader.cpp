#include "troupe/data/data_loader.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "troupe/data/detail/prefetch_queue.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {
namespace {

std::int64_t samples_per_epoch(const dataset_ptr& samples, const data_loader_options& options) {
  if (!samples) throw_invalid("DataLoader", "a data set", "a null pointer");
  if (options.batch < 1)
    throw_invalid("DataLoader", "a batch of at least one sample", std::to_string(options.batch));
  if (options.num_workers < 0)
    throw_invalid("DataLoader", "num_workers >= 0", std::to_string(options.num_workers));
  if (options.prefetch < 1)
    throw_invalid("DataLoader", "a prefetch of at least one batch", std::to_string(options.prefetch));
  if (options.samples_per_epoch != 0 && !options.order)
    throw_invalid("DataLoader", "samples_per_epoch with an order of your own", "none");
  if (options.tail == shard_tail::uneven && options.drop_last)
    throw_invalid("DataLoader", "drop_last = false with shard_tail::uneven, which is to use every sample",
                  "drop_last = true");
  return options.samples_per_epoch != 0 ? options.samples_per_epoch : samples->num_samples();
}

/// Of what the samples at a position depend on beside their number and the seed.
std::uint64_t hash_of_order(const data_loader_options& options, const dataset& samples) {
  const auto& layout = samples.layout();
  std::string text = options.order ? "own" : options.shuffle ? "shuffled" : "in order";
  if (layout.is_stream())
    text += " of " + std::to_string(layout.names_hash);
  else if (samples.reader())
    text += " of " + samples.reader()->name();
  if (layout.is_stream() && !options.order) {
    text += " tail " + std::to_string(static_cast<int>(options.tail));
    for (auto size : layout.shard_sizes) text += ' ' + std::to_string(size);
    if (options.shuffle) text += " by " + std::to_string(layout.shuffle_buffer);
  }
  return hash_of_name(text);
}

std::string cause_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& problem) {
    return problem.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

/// "17, 3, 250, ... (32 in all)".
std::string first_of(const std::vector<std::int64_t>& indices) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(indices.size(), 5); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(indices[i]);
  return indices.size() <= 5 ? text : text + ", ... (" + std::to_string(indices.size()) + " in all)";
}

/// The first of these samples that cannot be read by itself, and why; -1 if each can.
std::pair<std::int64_t, std::string> find_unreadable(dataset& samples,
                                                     const std::vector<std::int64_t>& indices) {
  for (auto index : indices) {
    try {
      samples.read(std::span(&index, 1));
    } catch (...) {
      return {index, cause_of(std::current_exception())};
    }
  }
  return {-1, {}};
}

}  // namespace

struct DataLoader::state {
  state(dataset_ptr from, const data_loader_options& options)
      : samples(std::move(from)),
        options(options),
        per_epoch(samples_per_epoch(samples, options)),
        order_hash(hash_of_order(options, *samples)),
        sampler({.num_samples = per_epoch,
                 .num_replicas = options.num_replicas,
                 .replica = options.replica,
                 .seed = options.seed,
                 .tail = options.tail,
                 .shuffle = options.shuffle,
                 .layout = samples->layout(),
                 .order = options.order}),
        num_batches(batches_left()) {
    if (num_batches == 0 && options.drop_last)
      throw_invalid(
          "DataLoader",
          "a batch of at most a shard, " + std::to_string(sampler.size()) + ", or drop_last = false",
          std::to_string(options.batch));
  }

  std::int64_t batches_left() const {
    return sampler.size() / options.batch + (!options.drop_last && sampler.size() % options.batch != 0);
  }

  /// Both are called on workers.
  labelled_samples read(std::int64_t number);
  [[noreturn]] void fail(const std::vector<std::int64_t>& indices, std::int64_t number) const;

  labelled_samples* next();
  void go_to(std::uint64_t epoch, std::int64_t samples_done);

  // constant
  dataset_ptr samples;
  data_loader_options options;
  std::int64_t per_epoch;
  std::uint64_t order_hash;

  std::mutex mutex;  // guards the sampler while there is a queue
  DistributedSampler sampler;
  std::int64_t num_batches;    ///< batches in a whole epoch
  std::int64_t skipped = 0;    ///< samples of this epoch, over all replicas
  std::int64_t num_taken = 0;  ///< batches, after those samples
  labelled_samples current;
  std::optional<detail::prefetch_queue> queue;  ///< last: its threads use the rest
};

labelled_samples DataLoader::state::read(std::int64_t number) {
  std::vector<std::int64_t> indices;
  std::vector<sample_range> read_soon;
  {
    std::lock_guard lock(mutex);
    auto first = number * options.batch;
    indices = sampler.indices(first, std::min(options.batch, sampler.size() - first));
    read_soon = sampler.take_read_soon();
  }
  hint(samples->reader().get(), read_soon);
  try {
    return samples->read(indices);
  } catch (...) {
    fail(indices, number);
  }
}

/// Called while the exception of a read is handled.
void DataLoader::state::fail(const std::vector<std::int64_t>& indices, std::int64_t number) const {
  auto whole = cause_of(std::current_exception());
  auto [sample, cause] = find_unreadable(*samples, indices);
  auto place = " (batch " + std::to_string(number + skipped / options.num_replicas / options.batch) +
               " of epoch " + std::to_string(sampler.epoch()) + ")";
  if (sample >= 0)
    std::throw_with_nested(
        data_error("cannot read sample " + std::to_string(sample) + place + ": " + cause, sample));
  std::throw_with_nested(data_error(
      "cannot read the samples " + first_of(indices) + place + " together, though each by itself: " + whole,
      sample));
}

labelled_samples* DataLoader::state::next() {
  if (!queue)
    queue.emplace([this](std::int64_t number) { return read(number); }, num_taken, batches_left(),
                  detail::prefetch_options{options.num_workers, options.prefetch});
  if (queue->at_end()) {
    go_to(sampler.epoch() + 1, 0);
    return nullptr;
  }
  try {
    current = queue->next();
  } catch (...) {
    queue.reset();
    throw;
  }
  ++num_taken;
  return &current;
}

void DataLoader::state::go_to(std::uint64_t epoch, std::int64_t samples_done) {
  queue.reset();
  current = {};
  sampler.set_epoch(epoch);
  sampler.skip(samples_done);
  skipped = samples_done;
  num_taken = 0;
}

DataLoader::DataLoader(dataset_ptr samples, const data_loader_options& options)
    : state_(std::make_unique<state>(std::move(samples), options)) {}

DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

std::optional<labelled_samples> DataLoader::next() {
  auto* batch = state_->next();
  if (batch == nullptr) return std::nullopt;
  return std::move(*batch);
}

DataLoader::iterator DataLoader::begin() { return iterator(state_.get()); }

DataLoader::iterator& DataLoader::iterator::operator++() {
  batch_ = loader_->next();
  return *this;
}

std::int64_t DataLoader::num_batches() const { return state_->num_batches; }

std::uint64_t DataLoader::epoch() const { return state_->sampler.epoch(); }

data_position DataLoader::position() const {
  const auto& here = *state_;
  auto done = here.per_epoch;  // at the end of the epoch, whatever is left of it
  if (here.num_taken < here.batches_left())
    done = std::min(done, here.skipped + here.num_taken * here.options.batch * here.options.num_replicas);
  return {epoch(), done, here.per_epoch, here.options.seed, here.options.num_replicas, here.order_hash};
}

void DataLoader::resume(const data_position& position) {
  if (position == data_position{}) return state_->go_to(0, 0);
  auto own = this->position();
  auto refuse = [](const std::string& what, const std::string& expected, const std::string& found) {
    throw bad_input("the position is one in other data: expected " + what + " " + expected + ", found " +
                    found + ". Use the data set and options it was saved with, or begin an epoch");
  };
  if (position.samples_per_epoch != own.samples_per_epoch)
    refuse("samples per epoch", std::to_string(own.samples_per_epoch),
           std::to_string(position.samples_per_epoch));
  if (position.seed != own.seed) refuse("seed", std::to_string(own.seed), std::to_string(position.seed));
  if (position.order_hash != own.order_hash)
    refuse("this order (shuffle, own order, names of files, a stream's shards, shuffle buffer and tail)",
           std::to_string(own.order_hash), std::to_string(position.order_hash));
  if (position.samples_done < 0 || position.samples_done > own.samples_per_epoch)
    refuse("samples done", "in [0, " + std::to_string(own.samples_per_epoch) + "]",
           std::to_string(position.samples_done));
  if (state_->samples->layout().is_stream() && !state_->options.order && position.samples_done != 0 &&
      position.samples_done != own.samples_per_epoch && position.num_replicas != own.num_replicas)
    throw bad_input("a stream goes on within an epoch with as many replicas as before: expected " +
                    std::to_string(own.num_replicas) + ", found " + std::to_string(position.num_replicas) +
                    ". Use as many, or begin an epoch");
  state_->go_to(position.epoch, position.samples_done);
}

void DataLoader::begin_epoch(std::uint64_t epoch) { state_->go_to(epoch, 0); }

}  // namespace troupe
