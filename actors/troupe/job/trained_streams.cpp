#include "troupe/job/trained_streams.hpp"

#include <iterator>
#include <utility>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

std::string named(const std::string& stream) { return stream.empty() ? "data that is no stream" : stream; }

}  // namespace

void trained_streams::resume(std::uint64_t step, std::string stream) {
  std::lock_guard lock(mutex_);
  resumed_step_ = step;
  resumed_stream_ = std::move(stream);
}

void trained_streams::add(std::uint64_t first, std::uint64_t last, const std::string& stream) {
  std::lock_guard lock(mutex_);
  if (first < resumed_step_ && resumed_step_ < last && stream != resumed_stream_)
    throw bad_input("--resume: the snapshot of step " + std::to_string(resumed_step_) +
                    " is one of training in another order: expected " + named(resumed_stream_) + ", found " +
                    named(stream) +
                    ". Use the same shards (number, sizes, names, sorted alike) and shuffle_buffer, or "
                    "--fresh-start");
  // Calls of the same stream are one entry: their number has no bound.
  auto after = begins_with_.upper_bound(first);
  bool goes_on = after == begins_with_.begin() ? stream.empty() : std::prev(after)->second == stream;
  if (!goes_on) begins_with_[first] = stream;
}

std::string trained_streams::at(std::uint64_t step) const {
  std::lock_guard lock(mutex_);
  auto after = begins_with_.lower_bound(step);
  return after == begins_with_.begin() ? std::string() : std::prev(after)->second;
}

}  // namespace troupe
