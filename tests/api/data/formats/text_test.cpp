#include "troupe/data/formats/text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>

#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

std::filesystem::path write(const troupe::testing::temp_folder& folder, int bytes) {
  auto file = folder.path() / "text";
  std::ofstream stream(file, std::ios::binary);
  for (int i = 0; i < bytes; ++i) stream.put(static_cast<char>(i));
  return file;
}

}  // namespace

TEST_CASE("a text's bytes are cut into samples, each token labelled with the next") {
  testing::temp_folder folder;
  auto file = write(folder, 124);  // 123 / 4 = 30 samples, 3 of them for evaluation
  auto train = text_bytes(file, 4, text_part::train), evaluate = text_bytes(file, 4, text_part::evaluate);
  CHECK(train->sample_extents() == shape{27, 4});
  CHECK(evaluate->sample_extents() == shape{3, 4});
  for (std::size_t i = 0; i < 27 * 4; ++i) {
    REQUIRE(train->samples().values<std::uint8_t>()[i] == i);
    REQUIRE(train->labels().values<std::uint8_t>()[i] == i + 1);
  }
  CHECK(evaluate->samples().values<std::uint8_t>()[0] == 27 * 4);
  CHECK(evaluate->labels().values<std::uint8_t>()[11] == 120);
}

TEST_CASE("texts that are too short or missing are refused with what was expected") {
  testing::temp_folder folder;
  CHECK(text_bytes(write(folder, 9), 4, text_part::train)->num_samples() == 1);
  CHECK_THROWS_WITH(text_bytes(write(folder, 8), 4, text_part::train),
                    ContainsSubstring("at least 9 bytes") && ContainsSubstring("found 8"));
  CHECK_THROWS_AS(text_bytes(write(folder, 0), 4, text_part::train), bad_input);
  CHECK_THROWS_AS(text_bytes(folder.path() / "none", 4, text_part::train), bad_input);
  CHECK_THROWS_AS(text_bytes(write(folder, 9), 0, text_part::train), std::invalid_argument);
}
