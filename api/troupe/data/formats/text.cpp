#include "troupe/data/formats/text.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "troupe/data/formats/detail/data_file.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

struct sample_range {
  std::int64_t first = 0, count = 0;
};

/// The range of samples of a part of a text with so many tokens of `token_bytes`.
sample_range range_of(const std::filesystem::path& file, std::uint64_t size_bytes, std::size_t token_bytes,
                      std::int64_t context, text_part part) {
  if (context < 1) throw_invalid("text_bytes, text_tokens", "context >= 1", std::to_string(context));
  auto tokens = static_cast<std::int64_t>(size_bytes / token_bytes);
  auto total = tokens < 1 ? 0 : (tokens - 1) / context;
  auto least = part == text_part::all ? 1 : 2;
  if (total < least)
    throw bad_input("text '" + file.string() + "' is too short: expected at least " +
                    std::to_string(static_cast<std::int64_t>(token_bytes) * (least * context + 1)) +
                    " bytes for " + (least == 1 ? "one sample" : "two samples") + " of " +
                    std::to_string(context) + ", found " + std::to_string(size_bytes));
  if (part == text_part::all) return {0, total};
  auto for_evaluation = std::max<std::int64_t>(total / 10, 1);
  if (part == text_part::evaluate) return {total - for_evaluation, for_evaluation};
  return {0, total - for_evaluation};
}

/// Reads the tokens of each sample, and the one after it.
class token_reader : public sample_reader {
 public:
  token_reader(const std::filesystem::path& file, std::int64_t context, text_part part,
               const token_options& options)
      : options_(options), context_(context), file_(file) {
    if (file_.size_bytes() % token_bytes() != 0)
      throw bad_input("'" + file.string() + "' has no token ids of " + to_string(options.type) +
                      ": expected a multiple of " + std::to_string(token_bytes()) + " bytes, found " +
                      std::to_string(file_.size_bytes()));
    auto range = range_of(file, file_.size_bytes(), token_bytes(), context, part);
    first_ = range.first;
    extents_ = shape{range.count, context};
    refuse_arrays();
  }

  const shape& sample_extents() const override { return extents_; }

  labelled_samples read(std::span<const std::int64_t> indices) override {
    shape extents{static_cast<std::int64_t>(indices.size()), context_};
    auto type = usual_dtype(options_.type);
    labelled_samples content{tensor::empty(extents, type), tensor::empty(extents, type)};
    auto count = static_cast<std::size_t>(context_);
    auto size = size_bytes(type);
    std::vector<std::byte> stored((count + 1) * token_bytes()), tokens((count + 1) * size);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      auto at = (first_ + indices[i]) * context_;
      file_.read_at(static_cast<std::uint64_t>(at) * token_bytes(), stored);
      convert_numbers(stored, options_.type, tokens, type, at);
      check_ids(tokens, type, at);
      std::ranges::copy(std::span(tokens).first(count * size),
                        content.samples.bytes().subspan(i * count * size).begin());
      std::ranges::copy(std::span(tokens).last(count * size),
                        content.labels.bytes().subspan(i * count * size).begin());
    }
    return content;
  }

  void will_read(std::int64_t first, std::int64_t count) override {
    auto sample_bytes = static_cast<std::uint64_t>(context_) * token_bytes();
    file_.will_read(static_cast<std::uint64_t>(first_ + first) * sample_bytes,
                    static_cast<std::uint64_t>(count) * sample_bytes + token_bytes());
  }
  void close() override { file_.close(); }
  std::string name() const override { return file_.path().filename().string(); }

 private:
  std::size_t token_bytes() const { return size_bytes(options_.type); }

  /// An array of NumPy's would be read as tokens that it has not.
  void refuse_arrays() {
    std::array<std::byte, 6> begin{};
    if (file_.size_bytes() < begin.size()) return;
    file_.read_at(0, begin);
    if (std::ranges::equal(begin, std::as_bytes(std::span("\x93NUMPY", 6))))
      throw bad_input(
          "'" + file_.path().string() +
          "' has more than token ids: expected nothing but these, as numpy's tofile() writes them, "
          "found a .npy file, which read_npy and npy_dataset read");
  }

  void check_ids(std::span<const std::byte> tokens, dtype type, std::int64_t first) const {
    if (type == dtype::u8)
      check_each<std::uint8_t>(tokens, first);
    else if (type == dtype::i32)
      check_each<std::int32_t>(tokens, first);
    else
      check_each<std::int64_t>(tokens, first);
  }
  template <class Id>
  void check_each(std::span<const std::byte> tokens, std::int64_t first) const {
    for (std::size_t i = 0; i < tokens.size() / sizeof(Id); ++i) {
      Id id{};
      std::memcpy(&id, tokens.data() + i * sizeof id, sizeof id);
      if (std::cmp_greater_equal(id, 0) &&
          (options_.vocabulary == 0 || std::cmp_less(id, options_.vocabulary)))
        continue;
      throw bad_input("'" + file_.path().string() + "' has the token id " + std::to_string(id) +
                      " at place " + std::to_string(first + static_cast<std::int64_t>(i)) +
                      ": expected ids from 0" +
                      (options_.vocabulary == 0
                           ? std::string(" on")
                           : " to " + std::to_string(options_.vocabulary - 1) + ", the model's vocabulary"));
    }
  }

  token_options options_;
  std::int64_t context_ = 0, first_ = 0;
  detail::data_file file_;
  shape extents_;
};

}  // namespace

dataset_ptr text_bytes(const std::filesystem::path& file, std::int64_t context, text_part part) {
  std::error_code problem;
  auto size = std::filesystem::file_size(file, problem);
  if (problem) throw bad_input("text '" + file.string() + "' cannot be read: " + problem.message());
  auto range = range_of(file, size, 1, context, part);
  shape extents{range.count, context};
  auto read = [=] {
    std::ifstream stream(file, std::ios::binary);
    labelled_samples content{tensor::empty(extents, dtype::u8), tensor::empty(extents, dtype::u8)};
    for (auto [target, offset] : {std::pair(&content.samples, 0), std::pair(&content.labels, 1)}) {
      stream.seekg(range.first * context + offset);
      stream.read(reinterpret_cast<char*>(target->bytes().data()),
                  static_cast<std::streamsize>(target->size_bytes()));
    }
    if (!stream) throw bad_input("text '" + file.string() + "' cannot be read: " + std::strerror(errno));
    return content;
  };
  return std::make_shared<dataset>(extents, read);
}

dataset_ptr text_tokens(const std::filesystem::path& file, std::int64_t context, text_part part,
                        const token_options& options) {
  auto type = usual_dtype(options.type);
  if (is_floating(type) || type == dtype::boolean)
    throw_invalid("text_tokens", "token ids of an integer type", to_string(options.type));
  return std::make_shared<dataset>(std::make_shared<token_reader>(file, context, part, options));
}

}  // namespace troupe
