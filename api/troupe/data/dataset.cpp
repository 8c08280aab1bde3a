#include "troupe/data/dataset.hpp"

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

void check(const shape& samples, const labelled_samples& content) {
  if (content.samples.shape() != samples)
    throw_invalid("dataset", "samples of shape " + to_string(samples), describe(content.samples));
  if (!content.labels.defined()) return;
  if (content.labels.shape().rank() < 1 || content.labels.shape()[0] != samples[0])
    throw_invalid("dataset", "labels for " + std::to_string(samples[0]) + " samples",
                  describe(content.labels));
}

shape checked(shape samples) {
  if (samples.rank() < 1) throw_invalid("dataset", "samples [N, ...]", to_string(samples));
  return samples;
}

}  // namespace

dataset::dataset(labelled_samples content)
    : extents_(checked(content.samples.shape())), content_(std::move(content)) {
  check(extents_, content_);
}

dataset::dataset(shape samples, std::function<labelled_samples()> read)
    : extents_(checked(std::move(samples))), read_(std::move(read)) {
  if (!read_) throw_invalid("dataset", "a function that reads the samples", "none");
}

void dataset::load() {
  std::lock_guard lock(mutex_);
  if (content_.samples.defined()) return;
  auto content = read_();
  check(extents_, content);
  content_ = std::move(content);
}

const tensor& dataset::samples() {
  load();
  return content_.samples;
}

const tensor& dataset::labels() {
  load();
  if (!content_.labels.defined())
    throw bad_input("training and evaluation need labels, and this data set of " + to_string(extents_) +
                    " has none, which does for predictions only");
  return content_.labels;
}

}  // namespace troupe
