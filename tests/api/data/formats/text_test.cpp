#include "troupe/data/formats/text.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <vector>

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

namespace {

template <class Id>
std::filesystem::path write_ids(const troupe::testing::temp_folder& folder, const std::vector<Id>& ids) {
  auto file = folder.path() / "train.bin";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(ids.data()),
             static_cast<std::streamsize>(ids.size() * sizeof(Id)));
  return file;
}

std::vector<std::uint16_t> counted_ids(int count, int step) {
  std::vector<std::uint16_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(static_cast<std::uint16_t>(i * step));
  return ids;
}

}  // namespace

TEST_CASE("token ids of a file are read with their values, each labelled with the next") {
  testing::temp_folder folder;
  auto file = write_ids(folder, counted_ids(124, 500));  // up to 61,500: half of them have the sign bit set
  auto train = text_tokens(file, 4, text_part::train), evaluate = text_tokens(file, 4, text_part::evaluate),
       all = text_tokens(file, 4, text_part::all);
  CHECK(train->sample_extents() == shape{27, 4});
  CHECK(evaluate->sample_extents() == shape{3, 4});
  CHECK(all->sample_extents() == shape{30, 4});
  auto read = train->read(std::vector<std::int64_t>{26, 0});
  CHECK(describe(read.samples) == "i32[2, 4]");
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(read.samples.values<std::int32_t>()[i] == static_cast<int>(26 * 4 + i) * 500);
    CHECK(read.labels.values<std::int32_t>()[i] == static_cast<int>(26 * 4 + i + 1) * 500);
    CHECK(read.samples.values<std::int32_t>()[4 + i] == static_cast<int>(i) * 500);
  }
  auto last = evaluate->read_rows(2, 1);
  CHECK(last.samples.values<std::int32_t>()[0] == 116 * 500);
  CHECK(last.labels.values<std::int32_t>()[3] == 120 * 500);
  train->reader()->will_read(0, 27);
  train->reader()->close();
  CHECK(train->reader()->name() == "train.bin");
  auto wide = text_tokens(write_ids(folder, std::vector<std::uint32_t>{1, 0x80000000, 3}), 2, text_part::all,
                          {.type = stored_number::u32});
  CHECK(wide->read_rows(0, 1).samples.values<std::int64_t>()[1] == 0x80000000);
}

TEST_CASE("files that are no token ids, and ids that are not in the vocabulary, are refused") {
  testing::temp_folder folder;
  auto file = write_ids(folder, counted_ids(9, 8000));
  CHECK(text_tokens(file, 4, text_part::train)->num_samples() == 1);
  auto of_gpt2 = text_tokens(file, 4, text_part::all, {.vocabulary = 50257});
  CHECK_NOTHROW(of_gpt2->read_rows(0, 1));
  CHECK_THROWS_AS(of_gpt2->read_rows(1, 1), bad_input);
  CHECK_THROWS_WITH(of_gpt2->read_rows(1, 1),
                    ContainsSubstring("train.bin' has the token id 56000 at place 7: "
                                      "expected ids from 0 to 50256"));
  CHECK_THROWS_WITH(text_tokens(write_ids(folder, std::vector<std::int32_t>{1, -2, 3}), 2, text_part::all,
                                {.type = stored_number::i32})
                        ->read_rows(0, 1),
                    ContainsSubstring("the token id -2 at place 1: expected ids from 0 on"));
  CHECK_THROWS_WITH(text_tokens(write(folder, 19), 4, text_part::train),
                    ContainsSubstring("expected a multiple of 2 bytes, found 19"));
  CHECK_THROWS_WITH(text_tokens(write(folder, 16), 4, text_part::train),
                    ContainsSubstring("at least 18 bytes for two samples"));
  CHECK_THROWS_WITH(text_tokens(write(folder, 8), 4, text_part::all),
                    ContainsSubstring("at least 10 bytes for one sample"));
  CHECK_THROWS_AS(text_tokens(folder.path() / "none", 4, text_part::all), bad_input);
  CHECK_THROWS_AS(text_tokens(file, 0, text_part::all), std::invalid_argument);
  CHECK_THROWS_AS(text_tokens(file, 4, text_part::all, {.type = stored_number::f32}), std::invalid_argument);
  std::ofstream(folder.path() / "array.npy", std::ios::binary) << "\x93NUMPY" << std::string(122, ' ');
  CHECK_THROWS_WITH(text_tokens(folder.path() / "array.npy", 4, text_part::all),
                    ContainsSubstring("found a .npy file"));
}
