#include "troupe/data/map_dataset.hpp"

#include <algorithm>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// [n, ...] of `count` tensors of one shape, to be filled row by row.
class stacked_rows {
 public:
  explicit stacked_rows(std::size_t count) : count_(static_cast<std::int64_t>(count)) {}

  void set(std::int64_t row, const tensor& value) {
    if (row == 0 && value.defined()) {
      auto extents = value.shape().extents();
      extents.insert(extents.begin(), count_);
      rows_ = tensor::empty(shape(std::move(extents)), value.dtype());
      first_ = value;
    }
    if (value.defined() != first_.defined() ||
        (value.defined() && (value.shape() != first_.shape() || value.dtype() != first_.dtype())))
      throw_invalid("map_dataset", describe(first_) + " as of the other samples of the batch",
                    describe(value));
    if (value.defined()) std::ranges::copy(value.bytes(), rows_.rows(row, 1).bytes().begin());
  }
  const tensor& result() const { return rows_; }

 private:
  std::int64_t count_;
  tensor first_, rows_;
};

class function_reader : public sample_reader {
 public:
  function_reader(shape samples, sample_function get) : extents_(std::move(samples)), get_(std::move(get)) {
    if (!get_) throw_invalid("map_dataset", "a function that returns a sample", "none");
  }

  const shape& sample_extents() const override { return extents_; }

  labelled_samples read(std::span<const std::int64_t> indices) override {
    if (indices.empty())
      throw_invalid("map_dataset", "at least one sample to be read", "none: it is not known what they are");
    stacked_rows samples(indices.size()), labels(indices.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto one = get_(indices[i]);
      auto row = static_cast<std::int64_t>(i);
      samples.set(row, one.samples);
      labels.set(row, one.labels);
    }
    return {samples.result(), labels.result()};
  }

 private:
  shape extents_;
  sample_function get_;
};

}  // namespace

dataset_ptr map_dataset(shape samples, sample_function get) {
  return std::make_shared<dataset>(std::make_shared<function_reader>(std::move(samples), std::move(get)));
}

}  // namespace troupe
