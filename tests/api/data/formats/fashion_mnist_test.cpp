#include "troupe/data/formats/fashion_mnist.hpp"

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "idx_bytes.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::data_split;
using troupe::fashion_mnist;
using namespace troupe::testing;

namespace {

const std::filesystem::path installed = "/usr/share/datasets/fashion-mnist";

/// A test split of `images` images and `labels` labels, gzipped.
void write_split(const std::filesystem::path& folder, std::uint32_t images, std::uint32_t labels,
                 std::uint32_t side = 28) {
  write_gzipped(folder / "t10k-images-idx3-ubyte.gz",
                idx_bytes({images, side, side}, counting(images * side * side)));
  write_gzipped(folder / "t10k-labels-idx1-ubyte.gz", idx_bytes({labels}, counting(labels, 10)));
}

auto advice() { return ContainsSubstring("apt-get install --reinstall dataset-fashion-mnist"); }

}  // namespace

TEST_CASE("Debian's package of Fashion-MNIST is complete and balanced") {
  if (!std::filesystem::exists(installed)) SKIP("the package dataset-fashion-mnist is not installed");
  for (auto [split, size] : {std::pair{data_split::train, 60000}, std::pair{data_split::test, 10000}}) {
    auto samples = fashion_mnist(installed, split);
    CHECK(samples->sample_extents() == troupe::shape{size, 28, 28});
    std::array<int, 10> count{};
    for (auto label : samples->labels().values<std::uint8_t>()) ++count.at(label);
    for (auto in_class : count) CHECK(in_class == size / 10);
    CHECK(troupe::describe(samples->samples()) == "u8[" + std::to_string(size) + ", 28, 28]");
  }
  // The first training image is an ankle boot.
  CHECK(fashion_mnist(installed, data_split::train)->labels().values<std::uint8_t>()[0] == 9);
}

TEST_CASE("a small split is read from gzipped and from plain files") {
  temp_folder folder;
  write_split(folder.path(), 3, 3);
  CHECK(fashion_mnist(folder.path(), data_split::test)->samples().values<std::uint8_t>()[784] == 784 % 256);
  temp_folder plain;
  write_plain(plain.path() / "t10k-images-idx3-ubyte", idx_bytes({3, 28, 28}, counting(3 * 784)));
  write_plain(plain.path() / "t10k-labels-idx1-ubyte", idx_bytes({3}, counting(3)));
  CHECK(fashion_mnist(plain.path(), data_split::test)->labels().values<std::uint8_t>()[2] == 2);
}

TEST_CASE("the error for a missing folder or file names the package to install") {
  temp_folder folder;
  CHECK_THROWS_WITH(fashion_mnist(folder.path() / "none", data_split::train),
                    ContainsSubstring("none") && advice());
  CHECK_THROWS_WITH(
      fashion_mnist(folder.path(), data_split::train),
      ContainsSubstring("train-images-idx3-ubyte.gz") && ContainsSubstring("No such file") && advice());
  CHECK_THROWS_AS(fashion_mnist(folder.path(), data_split::test), troupe::bad_input);
}

TEST_CASE("mismatched headers are refused before decompression") {
  temp_folder folder;
  write_split(folder.path(), 3, 4);
  CHECK_THROWS_WITH(fashion_mnist(folder.path(), data_split::test),
                    ContainsSubstring("expected 3 labels") && ContainsSubstring("found 4") && advice());
  write_split(folder.path(), 3, 3, 27);
  CHECK_THROWS_WITH(fashion_mnist(folder.path(), data_split::test), ContainsSubstring("[3, 27, 27]"));
}

TEST_CASE("a truncated file is refused with what was expected and found") {
  temp_folder folder;
  write_split(folder.path(), 30, 30);
  auto images = folder.path() / "t10k-images-idx3-ubyte.gz";
  std::filesystem::resize_file(images, std::filesystem::file_size(images) / 2);
  auto samples = fashion_mnist(folder.path(), data_split::test);
  CHECK_THROWS_WITH(samples->load(), ContainsSubstring(images.string()) && advice());
  CHECK_THROWS_AS(samples->load(), troupe::bad_input);
}

TEST_CASE("labels outside the ten classes are refused") {
  temp_folder folder;
  write_split(folder.path(), 12, 12);
  write_gzipped(folder.path() / "t10k-labels-idx1-ubyte.gz", idx_bytes({12}, counting(12)));
  CHECK_THROWS_WITH(fashion_mnist(folder.path(), data_split::test)->labels(), ContainsSubstring("found 10"));
}
