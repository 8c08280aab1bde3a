#include "troupe/data/formats/npy_dataset.hpp"

#include <algorithm>
#include <optional>

#include "troupe/data/formats/data_file.hpp"
#include "troupe/data/formats/npy_header.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

/// The rows of an array in a file.
class npy_rows {
 public:
  explicit npy_rows(const std::filesystem::path& file) : layout_(read_npy_layout(file)), file_(file) {
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
    auto result = tensor::empty(shape(std::move(rows)), layout_.header.type);
    for (std::size_t i = 0; i < indices.size();) {
      std::size_t count = 1;
      while (i + count < indices.size() && indices[i + count] == indices[i + count - 1] + 1) ++count;
      file_.read_at(offset_of(indices[i]), result.bytes().subspan(i * row_bytes_, count * row_bytes_));
      i += count;
    }
    try {
      check_npy_elements(result);
    } catch (const bad_input& problem) {
      throw bad_input("cannot read " + path().string() + ": " + problem.what());
    }
    return result;
  }

  void will_read(std::int64_t first, std::int64_t count) {
    file_.will_read(offset_of(first), static_cast<std::uint64_t>(count) * row_bytes_);
  }
  void close() { file_.close(); }

 private:
  std::uint64_t offset_of(std::int64_t row) const {
    return layout_.offset + static_cast<std::uint64_t>(row) * row_bytes_;
  }

  npy_layout layout_;
  data_file file_;
  std::uint64_t row_bytes_ = 0;
};

class npy_reader : public sample_reader {
 public:
  npy_reader(const std::filesystem::path& samples, const std::filesystem::path& labels) : samples_(samples) {
    if (labels.empty()) return;
    labels_.emplace(labels);
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

dataset_ptr npy_dataset(const std::filesystem::path& samples, const std::filesystem::path& labels) {
  return std::make_shared<dataset>(std::make_shared<npy_reader>(samples, labels));
}

}  // namespace troupe
