#include "troupe/safetensors/safetensors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>

#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
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

/// A file with this header, its length before it, and so many bytes after it.
std::string with_header(const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + std::string(data_bytes, '\1');
}

/// What reading a file of these bytes complains about; empty if nothing.
std::string complaint(const std::string& bytes) {
  temp_folder folder;
  auto file = folder.path() / "model.safetensors";
  write_bytes(file, bytes);
  try {
    read_safetensors(file);
  } catch (const bad_input& problem) {
    CHECK_THAT(problem.what(), ContainsSubstring(file.string()));
    return problem.what();
  }
  return {};
}
std::string complaint(const std::string& header, std::size_t data_bytes) {
  return complaint(with_header(header, data_bytes));
}

tensor counting(shape extents, dtype type) {
  auto value = tensor::empty(std::move(extents), type);
  int next = 0;
  for (auto& byte : value.bytes())
    byte = static_cast<std::byte>(type == dtype::boolean ? next++ % 2 : next++);
  return value;
}

std::vector<named_tensor> one_of_each() {
  return {{"a", counting({3}, dtype::i64)},     {"b", counting({2, 3}, dtype::f32)},
          {"c", counting({}, dtype::i32)},      {"d", counting({5}, dtype::bf16)},
          {"e", counting({0, 4}, dtype::f16)},  {"f", counting({7, 1}, dtype::u8)},
          {"g", counting({9}, dtype::boolean)}, {"h \"\n\u00e9", counting({1}, dtype::boolean)}};
}

// Written out by hand: two tensors, metadata, and spaces up to a multiple of 8.
const std::string known_header =
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})"
    "      ";
const std::string known_file =
    std::string("\x90\0\0\0\0\0\0\0", 8) + known_header + std::string("\0\0\x80\x3f\0\0\0\xc0\1\2\3", 11);

}  // namespace

TEST_CASE("tensors of every dtype and the metadata are read back from safetensors unchanged") {
  temp_folder folder;
  auto file = folder.path() / "model.safetensors";
  std::map<std::string, std::string> metadata{{"format", "troupe"}, {"", ""}, {"k\u00e9y", "\t"}};
  write_safetensors(file, one_of_each(), metadata);
  auto read = read_safetensors(file);
  CHECK(same_bits(read.tensors, one_of_each()));
  CHECK(read.metadata == metadata);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);

  write_safetensors(file, {});
  CHECK(bytes_of(file) == std::string("\x8\0\0\0\0\0\0\0{}      ", 16));
  CHECK(read_safetensors(file).tensors.empty());
}

TEST_CASE("a known safetensors file is written and read byte by byte") {
  temp_folder folder;
  auto file = folder.path() / "known";
  REQUIRE(known_header.size() == 0x90);
  std::vector<named_tensor> tensors{{"b", tensor::from(std::vector<std::uint8_t>{1, 2, 3}, {3})},
                                    {"w", tensor::from(std::vector<float>{1, -2}, {2})}};
  write_safetensors(file, tensors, {{"format", "pt"}});
  CHECK(bytes_of(file) == known_file);

  write_bytes(file, known_file);
  auto read = read_safetensors(file);
  std::swap(tensors[0], tensors[1]);
  CHECK(same_bits(read.tensors, tensors));
  CHECK(read.metadata == std::map<std::string, std::string>{{"format", "pt"}});
}

TEST_CASE("larger elements come first in a safetensors file, then names decide") {
  temp_folder folder;
  auto file = folder.path() / "model.safetensors";
  auto of = [](dtype type) { return tensor::zeros({1}, type); };
  write_safetensors(file, {{"a", of(dtype::boolean)},
                           {"b", of(dtype::u8)},
                           {"d", of(dtype::bf16)},
                           {"c", of(dtype::bf16)},
                           {"e", of(dtype::f16)},
                           {"g", of(dtype::i32)},
                           {"f", of(dtype::f32)},
                           {"h", of(dtype::i64)}});
  std::string order;
  for (const auto& [name, value] : read_safetensors(file).tensors) order += name;
  CHECK(order == "hfgcdeba");
}

TEST_CASE("a safetensors file cut at any byte, or with one more, is refused") {
  CHECK(complaint(known_file).empty());
  for (std::size_t size = 0; size < known_file.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(complaint(known_file.substr(0, size)).empty());
  }
  CHECK_THAT(complaint(known_file + 'x'), ContainsSubstring("to cover the 12 bytes"));
}

TEST_CASE("the length of a safetensors header is held to the file and to 100 MB") {
  auto with_length = [](std::uint64_t length) {
    auto bytes = known_file;
    std::memcpy(bytes.data(), &length, 8);
    return complaint(bytes);
  };
  CHECK_THAT(with_length(known_file.size() - 7), ContainsSubstring("within the file's 163"));
  CHECK_THAT(with_length(~std::uint64_t{0}), ContainsSubstring("18446744073709551615"));
  CHECK_THAT(with_length(0), ContainsSubstring("no JSON object"));
  temp_folder folder;
  auto file = folder.path() / "huge";
  write_bytes(file, std::string("\x01\xe1\xf5\x05\0\0\0\0", 8));  // 100'000'001
  std::filesystem::resize_file(file, 200'000'000);
  CHECK_THROWS_WITH(read_safetensors(file), ContainsSubstring("at most 100000000 bytes"));
}

TEST_CASE("a safetensors header that is not one JSON object is refused") {
  CHECK_THAT(complaint("[]", 0), ContainsSubstring("no JSON object"));
  CHECK_THAT(complaint(" {}", 0), ContainsSubstring("no JSON object"));
  CHECK_THAT(complaint("\xef\xbb\xbf{}", 0), ContainsSubstring("no JSON object"));
  CHECK_THAT(complaint(std::string("{}\0", 3), 0), ContainsSubstring("no zero byte"));
  CHECK_THAT(complaint("{} x", 0), ContainsSubstring("no JSON"));
  CHECK_THAT(complaint("{}{}", 0), ContainsSubstring("no JSON"));
  CHECK_THAT(complaint("{\"a", 0), ContainsSubstring("no JSON"));
  CHECK_THAT(complaint("{\"\xff\":{}}", 0), ContainsSubstring("no JSON") && ContainsSubstring("UTF-8"));
  CHECK_THAT(complaint("{\"a\":" + std::string(100'000, '['), 0), ContainsSubstring("'a' to be an object"));
  CHECK(complaint("{}  \n", 0).empty());
}

TEST_CASE("safetensors names and fields may not occur twice") {
  std::string fields = R"({"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  CHECK(complaint(R"({"a":)" + fields + "}", 1).empty());
  CHECK_THAT(complaint(R"({"a":)" + fields + R"(,"a":)" + fields + "}", 1), ContainsSubstring("'a' twice"));
  CHECK_THAT(complaint(R"({"a":)" + fields + R"(,"\u0061":)" + fields + "}", 1),
             ContainsSubstring("'a' twice"));
  CHECK_THAT(complaint(R"({"__metadata__":{},"__metadata__":{}})", 0), ContainsSubstring("twice"));
  CHECK_THAT(complaint(R"({"__metadata__":{"k":"1","k":"1"}})", 0), ContainsSubstring("'k' twice"));
  for (std::string field : {R"("dtype":"U8")", R"("shape":[1])", R"("data_offsets":[0,1])"})
    CHECK_THAT(complaint(R"({"a":{)" + field + "," + fields.substr(1) + "}", 1),
               ContainsSubstring("tensor 'a'") && ContainsSubstring("twice"));
}

TEST_CASE("every safetensors tensor has dtype, shape and data_offsets of the right kind and nothing else") {
  auto with_fields = [](const std::string& fields) { return complaint(R"({"a":{)" + fields + "}}", 4); };
  std::string type = R"("dtype":"F32",)", extents = R"("shape":[1],)", offsets = R"("data_offsets":[0,4])";
  CHECK(with_fields(type + extents + offsets).empty());
  CHECK_THAT(with_fields(extents + offsets), ContainsSubstring("found no dtype"));
  CHECK_THAT(with_fields(type + offsets), ContainsSubstring("found no shape"));
  CHECK_THAT(with_fields(type + R"("shape":[1])"), ContainsSubstring("found no data_offsets"));
  CHECK_THAT(with_fields(type + extents + R"("strides":[1],)" + offsets), ContainsSubstring("'strides'"));
  CHECK_THAT(with_fields(R"("dtype":"F64",)" + extents + offsets), ContainsSubstring("the bytes of F64[1]"));
  CHECK_THAT(with_fields(R"("dtype":4,)" + extents + offsets), ContainsSubstring("text as dtype"));
  CHECK_THAT(with_fields(R"("dtype":["F32"],)" + extents + offsets), ContainsSubstring("text as dtype"));
  CHECK_THAT(with_fields(type + R"("shape":1,)" + offsets), ContainsSubstring("an array as shape"));
  CHECK_THAT(with_fields(type + R"("shape":{},)" + offsets), ContainsSubstring("an array as shape"));
  for (std::string bad : {"-1", "1.0", "1e0", "-0", "\"1\"", "[1]", "null", "true", "18446744073709551616"})
    CHECK_THAT(with_fields(type + R"("shape":[)" + bad + "]," + offsets),
               ContainsSubstring("integers from 0") && ContainsSubstring("shape of tensor 'a'"));
  for (std::string bad :
       {"[0]", "[0,4,4]", "[]", "[-1,4]", "[4,0]", "[0,5]", "[1,4]", "[0,18446744073709551615]"})
    CHECK_THAT(with_fields(type + extents + R"("data_offsets":)" + bad), ContainsSubstring("tensor 'a'"));
  CHECK_THAT(complaint(R"({"a":1})", 0), ContainsSubstring("'a' to be an object"));
  CHECK_THAT(complaint(R"({"__metadata__":{"k":1}})", 0), ContainsSubstring("text as metadata 'k'"));
  CHECK_THAT(complaint(R"({"__metadata__":"pt"})", 0), ContainsSubstring("to be an object"));
}

TEST_CASE("safetensors shapes that overflow are refused") {
  auto with_shape = [](const std::string& extents, const std::string& type = "F32") {
    return complaint(R"({"a":{"dtype":")" + type + R"(","shape":)" + extents + R"(,"data_offsets":[0,4]}})",
                     4);
  };
  CHECK_THAT(with_shape("[4294967296,4294967296]"), ContainsSubstring("at most 2^58"));
  CHECK_THAT(with_shape("[9223372036854775808]"), ContainsSubstring("at most 2^58"));
  CHECK_THAT(with_shape("[0,9223372036854775808]"), ContainsSubstring("at most 2^58"));
  // 2^62 + 1 elements of 4 bytes are 4 bytes modulo 2^64.
  CHECK_THAT(with_shape("[4611686018427387905]"), ContainsSubstring("at most 2^58"));
  CHECK_THAT(with_shape("[288230376151711744]"), ContainsSubstring("the bytes of F32[288230376151711744]"));
  CHECK_THAT(with_shape("[2]"), ContainsSubstring("found 4 bytes at [0, 4]"));
  CHECK_THAT(with_shape("[1]", "I64"), ContainsSubstring("the bytes of I64[1]"));
}

TEST_CASE("safetensors tensors may neither overlap nor leave holes") {
  auto two = [](const std::string& first, const std::string& second, std::size_t data_bytes) {
    return complaint(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + first +
                         R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + second + "}}",
                     data_bytes);
  };
  CHECK(two("[0,2]", "[2,4]", 4).empty());
  CHECK(two("[2,4]", "[0,2]", 4).empty());
  CHECK_THAT(two("[0,2]", "[1,3]", 3), ContainsSubstring("tensor 'b'") && ContainsSubstring("overlap"));
  CHECK_THAT(two("[0,2]", "[0,2]", 2), ContainsSubstring("overlap"));
  CHECK_THAT(two("[0,2]", "[3,5]", 5), ContainsSubstring("a hole"));
  CHECK_THAT(two("[1,3]", "[3,5]", 5), ContainsSubstring("tensor 'a'") && ContainsSubstring("a hole"));
  CHECK_THAT(two("[0,2]", "[2,4]", 5), ContainsSubstring("end at byte 4"));
}

TEST_CASE("a byte that is no bool is refused") {
  auto bytes = with_header(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}})", 3);
  CHECK(complaint(bytes).empty());
  bytes.back() = 2;
  CHECK_THAT(complaint(bytes), ContainsSubstring("tensor 'a'") && ContainsSubstring("found 2 at element 2"));
}

TEST_CASE("random changes of a safetensors file are refused or give another valid file") {
  std::mt19937 random(20241121);
  temp_folder folder;
  auto file = folder.path() / "changed";
  for (int round = 0; round < 2000; ++round) {
    auto bad = known_file;
    for (auto count = random() % 4 + 1; count > 0; --count)
      bad[random() % bad.size()] = static_cast<char>(random());
    write_bytes(file, bad);
    try {
      for (const auto& of : read_safetensors(file).tensors) CHECK(of.value.size_bytes() <= 11);
    } catch (const bad_input&) {
    }
  }
}

TEST_CASE("a path that is no file, or cannot be written, is named") {
  temp_folder folder;
  CHECK_THROWS_WITH(read_safetensors(folder.path() / "none"),
                    ContainsSubstring("none") && ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(read_safetensors(folder.path()), ContainsSubstring("no regular file"));
  CHECK_THROWS_AS(write_safetensors(folder.path() / "none" / "model", one_of_each()), bad_input);
}

TEST_CASE("write_safetensors refuses duplicate names, reserved names and undefined tensors") {
  temp_folder folder;
  auto file = folder.path() / "model.safetensors";
  auto value = tensor::zeros({1});
  auto refusal = [&](const std::vector<named_tensor>& tensors) {
    try {
      write_safetensors(file, tensors);
    } catch (const std::invalid_argument& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal({{"a", value}, {"a", value}}), ContainsSubstring("'a' twice"));
  CHECK_THAT(refusal({{"a", {}}}), ContainsSubstring("undefined"));
  CHECK_THAT(refusal({{"__metadata__", value}}), ContainsSubstring("__metadata__"));
  CHECK_THAT(refusal({{"\xff", value}}), ContainsSubstring("UTF-8"));
  CHECK_FALSE(std::filesystem::exists(file));
}

namespace {

/// Two tensors: 'a' of this dtype, 8 bytes of 1, and 'b' F32[1].
std::string with_other(const std::string& type, int elements) {
  return with_header(R"({"a":{"dtype":")" + type + R"(","shape":[)" + std::to_string(elements) +
                         R"(],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                     12);
}

}  // namespace

TEST_CASE("a tensor of a dtype that is none here is named, converted or left out") {
  temp_folder folder;
  auto file = folder.path() / "model.safetensors";
  write_bytes(file, with_other("F64", 1));
  auto text = complaint(bytes_of(file));
  CHECK_THAT(text, ContainsSubstring("tensor 'a' is F64[1]") && ContainsSubstring("other_numbers::convert") &&
                       ContainsSubstring("other_numbers::leave_out"));
  CHECK_THAT(text, !ContainsSubstring("downloaded"));
  auto converted = read_safetensors(file, {.others = other_numbers::convert});
  CHECK(describe(converted.tensors[0].value) == "f32[1]");
  CHECK(converted.tensors.size() == 2);
  auto rest = read_safetensors(file, {.others = other_numbers::leave_out});
  REQUIRE(rest.tensors.size() == 1);
  CHECK(rest.tensors[0].name == "b");
  CHECK(bytes_of(file).ends_with(std::string(12, '\1')));
  REQUIRE(rest.left_out.size() == 1);
  CHECK(rest.left_out[0].name == "a");
  CHECK(rest.left_out[0].dtype == "F64");
  CHECK(rest.left_out[0].extents == shape{1});

  write_bytes(file, with_other("I16", 4));
  auto narrow = read_safetensors(file, {.others = other_numbers::convert}).tensors[0].value;
  CHECK(describe(narrow) == "i32[4]");
  CHECK(narrow.values<std::int32_t>()[3] == 0x101);
  write_bytes(file, with_other("U64", 1));
  CHECK(
      read_safetensors(file, {.others = other_numbers::convert}).tensors[0].value.values<std::int64_t>()[0] ==
      0x0101010101010101);

  write_bytes(file, with_other("F8_E4M3", 8));
  CHECK_THROWS_WITH(read_safetensors(file, {.others = other_numbers::convert}),
                    ContainsSubstring("tensor 'a' is F8_E4M3[8]") && !ContainsSubstring("::convert"));
  CHECK(read_safetensors(file, {.others = other_numbers::leave_out}).left_out[0].dtype == "F8_E4M3");
  CHECK_THAT(complaint(with_other("I16", 5)), ContainsSubstring("the bytes of I16[5]"));
}

TEST_CASE("a file of another format is named") {
  CHECK_THAT(complaint("PK\3\4\x14 and the rest of a .pt file"),
             ContainsSubstring("a zip archive, as torch.save") &&
                 ContainsSubstring("safetensors.torch.save_file") && !ContainsSubstring("downloaded"));
  CHECK_THAT(complaint("\x80\2\x8a\nl\xfc\x9c and so on"), ContainsSubstring("a Python pickle"));
  CHECK_THAT(complaint("\x1f\x8b\x08 and a stream"), ContainsSubstring("gunzip"));
  CHECK_THAT(complaint("\x93NUMPY and an array"), ContainsSubstring("NumPy's .npy"));
  CHECK_THAT(complaint("version https://git-lfs.github.com/spec/v1"), ContainsSubstring("git lfs pull"));
  CHECK_THAT(complaint("{\"metadata\": {}, \"weight_map\": {}}"),
             ContainsSubstring("safetensors.index.json"));
  CHECK_THAT(complaint("PK"), ContainsSubstring("downloaded"));
  // A header of 640 bytes begins as a pickle does.
  std::string header(640, '{');
  CHECK_THAT(complaint(header, 0), !ContainsSubstring("pickle") && ContainsSubstring("no JSON"));
}

TEST_CASE("a model is written in several files of a size with their index, which replace an older one") {
  temp_folder folder;
  auto index = folder.path() / "gpt.safetensors.index.json";
  std::vector<named_tensor> model{{"z", counting({4}, dtype::f32)},
                                  {"a", counting({3}, dtype::i64)},
                                  {"big", counting({100}, dtype::f32)},
                                  {"c", counting({1}, dtype::u8)}};
  auto files_there = [&] {
    std::set<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder.path()))
      names.insert(each.path().filename().string());
    return names;
  };
  auto check_model = [&] {
    auto read = read_sharded_safetensors(index);
    REQUIRE(read.tensors.size() == model.size());
    for (const auto& each : model) {
      auto found = std::ranges::find(read.tensors, each.name, &named_tensor::name);
      REQUIRE(found != read.tensors.end());
      CHECK(same_bits(found->value, each.value));
    }
    CHECK(read.metadata.at("format") == "pt");
  };
  write_bytes(folder.path() / "gpt-00001-of-00009.safetensors", "of somebody else");
  write_sharded_safetensors(index, model, 40, {{"format", "pt"}});
  check_model();
  CHECK(files_there() == std::set<std::string>{"gpt.safetensors.index.json", "gpt-00001-of-00003.safetensors",
                                               "gpt-00002-of-00003.safetensors",
                                               "gpt-00003-of-00003.safetensors",
                                               "gpt-00001-of-00009.safetensors"});
  CHECK_THAT(bytes_of(index), ContainsSubstring(R"("total_size": 441)") &&
                                  ContainsSubstring(R"("a": "gpt-00001-of-00003.safetensors")") &&
                                  ContainsSubstring(R"("big": "gpt-00002-of-00003.safetensors")"));
  CHECK(read_safetensors(folder.path() / "gpt-00003-of-00003.safetensors").tensors.size() == 1);

  write_sharded_safetensors(index, model, 1 << 20, {{"format", "pt"}});
  check_model();
  CHECK(files_there() == std::set<std::string>{"gpt.safetensors.index.json", "gpt-00001-of-00001.safetensors",
                                               "gpt-00001-of-00009.safetensors"});

  CHECK_THROWS_AS(write_sharded_safetensors(index, model, 0), std::invalid_argument);
  CHECK_THROWS_WITH(
      write_sharded_safetensors(folder.path() / "gpt.safetensors", model),
      ContainsSubstring("expected an index NAME.safetensors.index.json, got 'gpt.safetensors'"));
  auto twice = model;
  twice.push_back(model[0]);
  CHECK_THROWS_AS(write_sharded_safetensors(index, twice), std::invalid_argument);
  check_model();  // what is refused changes nothing
  CHECK_THROWS_AS(write_sharded_safetensors(folder.path() / "none" / "m.safetensors.index.json", model),
                  bad_input);
}

TEST_CASE("a model in several shards is read by its index") {
  temp_folder folder;
  auto index = folder.path() / "model.safetensors.index.json";
  auto a = counting({2}, dtype::f32), b = counting({3}, dtype::i64), c = counting({1}, dtype::u8);
  write_safetensors(folder.path() / "model-00001-of-00002.safetensors", {{"a", a}, {"b", b}},
                    {{"format", "pt"}});
  write_safetensors(folder.path() / "model-00002-of-00002.safetensors", {{"c", c}});
  auto with = [&](const std::string& text) { write_bytes(index, text); };
  std::string first = R"("model-00001-of-00002.safetensors")",
              second = R"("model-00002-of-00002.safetensors")";
  with(R"({"metadata":{"total_size":33},"weight_map":{"a":)" + first + R"(,"b":)" + first + R"(,"c":)" +
       second + "}}");
  auto all = read_sharded_safetensors(index);
  REQUIRE(all.tensors.size() == 3);
  CHECK(all.metadata.at("format") == "pt");
  for (const auto& [name, value] : all.tensors)
    CHECK(same_bits(value, name == "a" ? a : name == "b" ? b : c));

  auto refused = [&](const std::string& text, const std::string& part) {
    with(text);
    CHECK_THROWS_WITH(read_sharded_safetensors(index),
                      ContainsSubstring("model.safetensors.index.json") && ContainsSubstring(part));
    CHECK_THROWS_AS(read_sharded_safetensors(index), bad_input);
  };
  refused(R"({"weight_map":{"a":)" + first + R"(,"c":)" + second + "}}",
          "has the tensor 'b', which the index does not");
  refused(R"({"weight_map":{"a":)" + first + R"(,"b":)" + first + R"(,"d":)" + first + "}}",
          "has no tensor 'd'");
  refused(R"({"weight_map":{"a":"gone.safetensors"}})", "shard 1 of 1, gone.safetensors, is missing");
  refused(R"({"weight_map":{"a":"../a.safetensors"}})", "found '../a.safetensors'");
  refused(R"({"weight_map":[]})", "a weight_map");
  refused(R"([])", "a weight_map");
  refused(R"({"weight_map":{"a":1}})", "string");
  refused(R"({"weight_map":)", "downloaded");
  CHECK_THROWS_AS(read_sharded_safetensors(folder.path() / "none"), bad_input);
}
