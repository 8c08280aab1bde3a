#include "troupe/data/formats/record_file.hpp"
#include "troupe/data/map_dataset.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

class record_reader : public sample_reader {
 public:
  record_reader(const std::filesystem::path& file, const shape& sample, record_decoder decode)
      : file_(file), name_(file.filename().string()) {
    if (!decode) throw_invalid("record_dataset", "a function that decodes a record", "none");
    auto extents = sample.extents();
    extents.insert(extents.begin(), file_.num_records());
    samples_ = map_dataset(shape(std::move(extents)), [this, decode = std::move(decode)](std::int64_t index) {
      return decode(file_.read(index));
    });
  }

  const shape& sample_extents() const override { return samples_->sample_extents(); }
  labelled_samples read(std::span<const std::int64_t> indices) override { return samples_->read(indices); }
  void will_read(std::int64_t first, std::int64_t count) override { file_.will_read(first, count); }
  void close() override { file_.close(); }
  std::string name() const override { return name_; }

 private:
  record_file file_;
  std::string name_;
  dataset_ptr samples_;
};

}  // namespace

dataset_ptr record_dataset(const std::filesystem::path& file, const shape& sample, record_decoder decode) {
  return std::make_shared<dataset>(std::make_shared<record_reader>(file, sample, std::move(decode)));
}

}  // namespace troupe
