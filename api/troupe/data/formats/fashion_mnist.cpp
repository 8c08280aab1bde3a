#include "troupe/data/formats/fashion_mnist.hpp"

#include "troupe/data/formats/idx_file.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

constexpr std::int64_t side = 28;
constexpr std::uint8_t num_classes = 10;

struct split_files {
  std::filesystem::path images;
  std::filesystem::path labels;
};

/// The path of the gzipped file if it exists (as in the Debian package), else of the plain one.
std::filesystem::path find(const std::filesystem::path& folder, const std::string& name) {
  auto plain = folder / name;
  auto packed = folder / (name + ".gz");
  return std::filesystem::exists(plain) && !std::filesystem::exists(packed) ? plain : packed;
}

split_files files_of(const std::filesystem::path& folder, data_split split) {
  std::string prefix = split == data_split::train ? "train" : "t10k";
  return {find(folder, prefix + "-images-idx3-ubyte"), find(folder, prefix + "-labels-idx1-ubyte")};
}

/// Runs `read`; appends to a bad_input error how to install the data set.
template <class Read>
auto with_advice(Read read) {
  try {
    return read();
  } catch (const bad_input& problem) {
    throw bad_input(
        std::string(problem.what()) +
        ". Install the data set with `apt-get install --reinstall dataset-fashion-mnist`, or name another "
        "folder with --data");
  }
}

shape check_headers(const split_files& files) {
  auto images = read_idx_header(files.images, 3);
  auto labels = read_idx_header(files.labels, 1);
  if (images[1] != side || images[2] != side)
    throw bad_input("'" + files.images.string() + "': expected images of shape [28, 28], found " +
                    to_string(images));
  if (labels[0] != images[0])
    throw bad_input("'" + files.labels.string() + "': expected " + std::to_string(images[0]) +
                    " labels, one per image, found " + std::to_string(labels[0]));
  return images;
}

labelled_samples read_split(const split_files& files) {
  labelled_samples content{read_idx(files.images, 3), read_idx(files.labels, 1)};
  for (auto label : content.labels.values<std::uint8_t>())
    if (label >= num_classes)
      throw bad_input("'" + files.labels.string() + "': expected labels below 10, found " +
                      std::to_string(label));
  return content;
}

}  // namespace

std::string_view to_string(data_split split) { return split == data_split::train ? "train" : "test"; }

dataset_ptr fashion_mnist(const std::filesystem::path& folder, data_split split) {
  return with_advice([&] {
    std::error_code problem;
    auto found = std::filesystem::status(folder, problem);
    if (found.type() == std::filesystem::file_type::not_found)
      throw bad_input("the data set's folder '" + folder.string() + "' does not exist");
    if (!std::filesystem::is_directory(found))
      throw bad_input("the data set's folder '" + folder.string() +
                      "' cannot be read: " + (problem ? problem.message() : "it is no folder"));
    auto files = files_of(folder, split);
    auto extents = check_headers(files);
    return std::make_shared<dataset>(extents,
                                     [files] { return with_advice([&] { return read_split(files); }); });
  });
}

}  // namespace troupe
