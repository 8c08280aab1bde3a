#include "troupe/data/formats/npy_dataset.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "troupe/data/formats/detail/data_file.hpp"
#include "troupe/data/formats/detail/npy_header.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// The rows of an array in a file.
class npy_rows {
 public:
  /// `option` is the name of `as` for messages.
  npy_rows(const std::filesystem::path& file, std::optional<dtype> as, const std::string& option)
      : layout_(detail::read_npy_layout(file)), file_(file) {
    with_name([&] { dtype_ = npy_dtype(layout_.header, as, option); });
    if (extents().rank() < 1)
      throw bad_input("cannot read " + file.string() + ": expected samples [N, ...], found one number");
    if (file_.size_bytes() != layout_.file_bytes)
      throw bad_input("cannot read " + file.string() + ": it is being written: expected " +
                      std::to_string(layout_.file_bytes) + " bytes, found " +
                      std::to_string(file_.size_bytes()) + ". Open it when it is complete");
    auto num_rows = static_cast<std::uint64_t>(std::max<std::int64_t>(extents()[0], 1));
    row_bytes_ = (layout_.file_bytes - layout_.offset) / num_rows;
  }

  const shape& extents() const { return layout_.header.extents; }
  const std::filesystem::path& path() const { return file_.path(); }

  /// Rows that follow each other are read at once.
  tensor read(std::span<const std::int64_t> indices) {
    auto rows = extents().extents();
    rows[0] = static_cast<std::int64_t>(indices.size());
    auto result = tensor::empty(shape(std::move(rows)), dtype_);
    auto same = same_dtype(layout_.header.type) == dtype_;
    auto elements = row_bytes_ / size_bytes(layout_.header.type);
    std::vector<std::byte> stored;
    for (std::size_t i = 0; i < indices.size();) {
      std::size_t count = 1;
      while (i + count < indices.size() && indices[i + count] == indices[i + count - 1] + 1) ++count;
      auto row_size = elements * size_bytes(dtype_);
      auto to = result.bytes().subspan(i * row_size, count * row_size);
      if (!same) stored.resize(count * row_bytes_);
      auto from = same ? to : std::span(stored);
      file_.read_at(offset_of(indices[i]), from);
      auto first = indices[i] * static_cast<std::int64_t>(elements);
      with_name([&] { convert_numbers(from, layout_.header.type, to, dtype_, first); });
      i += count;
    }
    return result;
  }

  void will_read(std::int64_t first, std::int64_t count) {
    file_.will_read(offset_of(first), static_cast<std::uint64_t>(count) * row_bytes_);
  }
  void close() { file_.close(); }

 private:
  template <class Function>
  void with_name(Function call) const {
    try {
      call();
    } catch (const bad_input& problem) {
      throw bad_input("cannot read " + path().string() + ": " + problem.what());
    }
  }
  std::uint64_t offset_of(std::int64_t row) const {
    return layout_.offset + static_cast<std::uint64_t>(row) * row_bytes_;
  }

  detail::npy_layout layout_;
  detail::data_file file_;
  dtype dtype_ = dtype::f32;     ///< of the tensors that it returns
  std::uint64_t row_bytes_ = 0;  ///< bytes of a sample in the file
};

class npy_reader : public sample_reader {
 public:
  npy_reader(const std::filesystem::path& samples, const std::filesystem::path& labels,
             const npy_dataset_options& options)
      : samples_(samples, options.samples_as, "samples_as") {
    if (labels.empty()) return;
    labels_.emplace(labels, options.labels_as, "labels_as");
    if (labels_->extents()[0] != samples_.extents()[0])
      throw bad_input("expected a label for each of the " + std::to_string(samples_.extents()[0]) +
                      " samples in " + samples.string() + ", found " + std::to_string(labels_->extents()[0]) +
                      " in " + labels.string());
  }

  const shape& sample_extents() const override { return samples_.extents(); }
  labelled_samples read(std::span<const std::int64_t> indices) override {
    return {samples_.read(indices), labels_ ? labels_->read(indices) : tensor()};
  }
  void will_read(std::int64_t first, std::int64_t count) override {
    samples_.will_read(first, count);
    if (labels_) labels_->will_read(first, count);
  }
  void close() override {
    samples_.close();
    if (labels_) labels_->close();
  }
  std::string name() const override { return samples_.path().filename().string(); }

 private:
  npy_rows samples_;
  std::optional<npy_rows> labels_;
};

}  // namespace

dataset_ptr npy_dataset(const std::filesystem::path& samples, const std::filesystem::path& labels,
                        const npy_dataset_options& options) {
  return std::make_shared<dataset>(std::make_shared<npy_reader>(samples, labels, options));
}

}  // namespace troupe
