#include "troupe/data/formats/npy_file.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <iterator>
#include <random>

#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace std::string_literals;
using namespace troupe;
using namespace troupe::testing;

namespace {

void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A file of format version `major` with this dictionary.
std::string npy(const std::string& dictionary, const std::string& elements, int major = 1) {
  auto header = dictionary + "   \n";
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + elements;
}

tensor read(const std::string& bytes) {
  temp_folder folder;
  write_bytes(folder.path() / "array.npy", bytes);
  return read_npy(folder.path() / "array.npy");
}

/// What reading a file of these bytes complains about; empty if nothing.
std::string complaint(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const bad_input& problem) {
    CHECK_THAT(problem.what(), ContainsSubstring("array.npy"));
    return problem.what();
  }
  return {};
}

std::string with_shape(const std::string& extents) {
  return "{'descr': '|u1', 'fortran_order': False, 'shape': " + extents + ", }";
}

// As numpy.save writes numpy.array([[1, -2], [0, 3]], dtype='float32'): 128 bytes before the elements.
const std::string known_text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }";
const std::string known_file = std::string("\x93NUMPY\1\0\x76\0", 10) + known_text +
                               std::string(128 - 10 - known_text.size() - 1, ' ') + '\n' +
                               std::string("\0\0\x80\x3f\0\0\0\xc0\0\0\0\0\0\0\x40\x40", 16);

}  // namespace

TEST_CASE("arrays of every NumPy dtype are read back from an npy file unchanged") {
  temp_folder folder;
  auto file = folder.path() / "array.npy";
  for (auto type : {dtype::f32, dtype::f16, dtype::i64, dtype::i32, dtype::u8, dtype::boolean})
    for (const auto& extents : {shape{}, shape{1}, shape{5}, shape{2, 3}, shape{0, 4}, shape{2, 1, 3}}) {
      auto array = tensor::empty(extents, type);
      int next = 0;
      for (auto& byte : array.bytes()) byte = static_cast<std::byte>(next++ % 2);
      write_npy(file, array);
      CHECK(same_bits(read_npy(file), array));
      CHECK((std::filesystem::file_size(file) - array.size_bytes()) % 64 == 0);
    }
}

TEST_CASE("a known npy file is read, and written again equal except for its padding") {
  auto array = tensor::from(std::vector<float>{1, -2, 0, 3}, {2, 2});
  CHECK(same_bits(read(known_file), array));
  temp_folder folder;
  write_npy(folder.path() / "array.npy", array);
  CHECK(bytes_of(folder.path() / "array.npy") == known_file);
  write_npy(folder.path() / "vector.npy", array.reshape({4}));
  CHECK_THAT(bytes_of(folder.path() / "vector.npy"), ContainsSubstring("'shape': (4,), }"));
}

TEST_CASE("npy headers of versions 1 to 3, with other quotes, order and commas, are read alike") {
  auto array = tensor::from(std::vector<std::uint8_t>{7, 8}, {2, 1});
  for (int major : {1, 2, 3}) CHECK(same_bits(read(npy(with_shape("(2, 1)"), "\7\b", major)), array));
  CHECK(same_bits(read(npy(with_shape("(2,1,)"), "\7\b")), array));
  CHECK(same_bits(read(npy(R"({"shape":(2,1),"fortran_order":False,"descr":"|u1"})", "\7\b")), array));
  CHECK(read(npy(with_shape("()"), "x")).shape() == shape{});
  CHECK(read(npy(with_shape("(0, 9223372036854775807)"), "")).num_elements() == 0);
  CHECK_THAT(complaint(npy(with_shape("(2,)"), "ab", 4)), ContainsSubstring("found 4.0"));
  CHECK_THAT(complaint(npy(with_shape("(2,)"), "ab", 0)), ContainsSubstring("version 1.0, 2.0 or 3.0"));
}

TEST_CASE("an npy file cut at any byte, or with one more, is refused") {
  CHECK(complaint(known_file).empty());
  for (std::size_t size = 0; size < known_file.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(complaint(known_file.substr(0, size)).empty());
  }
  CHECK_THAT(complaint(known_file + 'x'), ContainsSubstring("too long") && ContainsSubstring("f32[2, 2]") &&
                                              ContainsSubstring("found 17 bytes"));
  CHECK_THAT(complaint(known_file.substr(0, 140)),
             ContainsSubstring("truncated") && ContainsSubstring("found 12 bytes"));
}

TEST_CASE("errors of npy files name the expected content") {
  auto with_type = [](const std::string& type) {
    return complaint(npy("{'descr': " + type + ", 'fortran_order': False, 'shape': (), }", "12345678"));
  };
  CHECK_THAT(with_type("'<f8'"), ContainsSubstring("found <f8") && ContainsSubstring("{.as = dtype::f32}") &&
                                     ContainsSubstring("astype()"));
  CHECK_THAT(with_type("'>f4'"),
             ContainsSubstring("found the dtype '>f4'") && ContainsSubstring("astype('<f4')"));
  CHECK_THAT(with_type("'<c8'"), ContainsSubstring("found '<c8'"));
  CHECK_THAT(with_type("'|f4'"), ContainsSubstring("found '|f4'"));
  CHECK_THAT(with_type("''"), ContainsSubstring("found ''"));
  CHECK_THAT(with_type("'|O'"), ContainsSubstring("found '|O'"));
  CHECK_THAT(with_type("[('a', '<f4'), ('b', '<i4')]"),
             ContainsSubstring("found a structured array") && ContainsSubstring("save each field"));
  CHECK_THAT(with_type("4"), ContainsSubstring("a text in quotes"));
  CHECK_THAT(complaint(npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }", "abcd")),
             ContainsSubstring("Fortran order") && ContainsSubstring("ascontiguousarray"));
  CHECK_THAT(complaint(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", "\1\2")),
             ContainsSubstring("0 or 1"));
  CHECK_THAT(complaint("1.0,2.0\n3.0,4.0\n"), ContainsSubstring("Save the array with numpy.save"));
  CHECK_THAT(complaint("PK\3\4 and what else a zip file has"), ContainsSubstring("does not begin"));
}

TEST_CASE("dtypes are read with each byte order that means the same") {
  auto array = tensor::from(std::vector<std::uint8_t>{7, 1}, {2});
  for (std::string type : {"|u1", "<u1", "=u1", ">u1"})
    CHECK(same_bits(read(npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }", "\7\1")),
                    array));
  for (std::string type : {"|b1", "<b1", "=b1"})
    CHECK(read(npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (2,), }", "\1\1")).dtype() ==
          dtype::boolean);
  for (std::string type : {"<f4", "=f4"})
    CHECK(same_bits(read(npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,), }",
                             std::string("\0\0\x80\x3f", 4))),
                    tensor::from(std::vector<float>{1}, {1})));
}

TEST_CASE("Fortran order is read where it is C order too") {
  auto in_order = [](const std::string& extents, const std::string& elements) {
    return read(npy("{'descr': '|u1', 'fortran_order': True, 'shape': " + extents + ", }", elements));
  };
  CHECK(same_bits(in_order("(3,)", "abc"), tensor::from(std::vector<std::uint8_t>{'a', 'b', 'c'}, {3})));
  CHECK(in_order("(1, 3)", "abc").shape() == shape{1, 3});
  CHECK(in_order("(3, 1)", "abc").shape() == shape{3, 1});
  CHECK(in_order("()", "a").shape() == shape{});
  CHECK(in_order("(2, 0, 3)", "").shape() == shape{2, 0, 3});
  CHECK_THROWS_AS(in_order("(2, 1, 2)", "abcd"), bad_input);
}

TEST_CASE("numbers that no tensor has are converted where that is asked for") {
  temp_folder folder;
  auto file = folder.path() / "array.npy";
  auto one = [&](const std::string& type, const std::string& bytes, dtype as) {
    write_bytes(file, npy("{'descr': '" + type + "', 'fortran_order': False, 'shape': (1,), }", bytes));
    return read_npy(file, {.as = as});
  };
  // As numpy.save writes numpy.array([0.5, -2.25, 1e-3]).
  write_bytes(
      file, npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }",
                std::string("\0\0\0\0\0\0\xe0\x3f\0\0\0\0\0\0\x02\xc0\xfc\xa9\xf1\xd2\x4d\x62\x50\x3f", 24)));
  CHECK(same_bits(read_npy(file, {.as = dtype::f32}),
                  tensor::from(std::vector<float>{0.5F, -2.25F, 1e-3F}, {3})));
  CHECK_THROWS_WITH(read_npy(file, {.as = dtype::i32}),
                    ContainsSubstring("array.npy") && ContainsSubstring("found 0.5 at element 0"));
  CHECK_THROWS_WITH(read_npy(file), ContainsSubstring("{.as = dtype::f32}"));
  CHECK(one("<u2", "\xff\xff", dtype::i32).values<std::int32_t>()[0] == 65535);
  CHECK(one("<u4", "\xff\xff\xff\xff", dtype::i64).values<std::int64_t>()[0] == 0xffffffff);
  CHECK(one("|i1", "\xff", dtype::i32).values<std::int32_t>()[0] == -1);
  CHECK(one("<i2", "\0\x80"s, dtype::i64).values<std::int64_t>()[0] == -32768);
  CHECK(one("|u1", "\x02", dtype::f32).values<float>()[0] == 2);
  CHECK_THROWS_WITH(read(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }", "ab")),
                    ContainsSubstring("{.as = dtype::i32}"));
  // Longer than what is converted at once.
  std::string many(2 * 1'100'000, '\0');
  many[2 * 1'099'999] = '\x05';
  write_bytes(file, npy("{'descr': '<u2', 'fortran_order': False, 'shape': (1100000,), }", many));
  auto values = read_npy(file, {.as = dtype::i32});
  CHECK(values.values<std::int32_t>()[1'099'999] == 5);
  CHECK(values.values<std::int32_t>()[1'099'998] == 0);
}

TEST_CASE("npy headers are read strictly") {
  for (std::string bad : {"(2)", "(,)", "(-2, -1)", "(2, 1", "2", "(2L,)", "(2.0,)", "[2, 1]", "(2 1)",
                          "(9223372036854775808,)", "(9223372036854775807, 2)", "(2,,1)", "( + 2,)"}) {
    CAPTURE(bad);
    CHECK_FALSE(complaint(npy(with_shape(bad), "ab")).empty());
  }
  // 2^62 + 1 elements of 4 bytes are 4 bytes modulo 2^64.
  CHECK_THAT(
      complaint(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905,), }", "abcd")),
      ContainsSubstring("at most 2^58 elements"));
  std::string type = "'descr': '|u1'", order = "'fortran_order': False", extents = "'shape': (2,)",
              comma = ", ";
  auto with = [](const std::string& fields) { return complaint(npy("{" + fields + "}", "ab")); };
  CHECK(with(type + comma + order + comma + extents).empty());
  CHECK_THAT(with(type + comma + order), ContainsSubstring("no shape"));
  CHECK_THAT(with(type + comma + extents), ContainsSubstring("no fortran_order"));
  CHECK_THAT(with(order + comma + extents), ContainsSubstring("no descr"));
  CHECK_THAT(with(type + comma + type + comma + order + comma + extents), ContainsSubstring("twice"));
  CHECK_THAT(with(type + comma + order + comma + extents + ", 'more': 1"), ContainsSubstring("'more'"));
  CHECK_THAT(with(type + " " + order), ContainsSubstring("expected '}'"));
  CHECK_THAT(complaint(npy(with_shape("(2,)") + "x", "ab")), ContainsSubstring("newline"));
  CHECK_THAT(complaint(npy(with_shape("(2,)") + std::string(70'000, ' '), "ab", 2)),
             ContainsSubstring("at most 65535 bytes"));
}

TEST_CASE("random changes of an npy file are refused or give another valid file") {
  std::mt19937 random(20241121);
  for (int round = 0; round < 2000; ++round) {
    auto bad = known_file;
    for (auto count = random() % 4 + 1; count > 0; --count)
      bad[random() % 70] = static_cast<char>(random() % 2 == 0 ? random() : '0' + random() % 10);
    complaint(bad);
  }
}

TEST_CASE("an npy file that is missing or cannot be written is named, and bf16 is refused") {
  temp_folder folder;
  CHECK_THROWS_WITH(read_npy(folder.path() / "none.npy"),
                    ContainsSubstring("none.npy") && ContainsSubstring("No such file"));
  CHECK_THROWS_AS(read_npy(folder.path()), bad_input);
  CHECK_THROWS_AS(write_npy(folder.path() / "none" / "array.npy", tensor::zeros({1})), bad_input);
  CHECK_THROWS_WITH(write_npy(folder.path() / "array.npy", tensor::zeros({1}, dtype::bf16)),
                    ContainsSubstring("got bf16"));
  CHECK_THROWS_AS(write_npy(folder.path() / "array.npy", {}), std::invalid_argument);
}
