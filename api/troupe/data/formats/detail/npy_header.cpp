#include "troupe/data/formats/detail/npy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/error/errors.hpp"

namespace troupe::detail {
namespace {

using known_type = std::pair<stored_number, std::string_view>;
/// What follows the byte order.
constexpr std::array<known_type, 12> names{{{stored_number::f32, "f4"},
                                            {stored_number::f16, "f2"},
                                            {stored_number::i64, "i8"},
                                            {stored_number::i32, "i4"},
                                            {stored_number::u8, "u1"},
                                            {stored_number::boolean, "b1"},
                                            {stored_number::f64, "f8"},
                                            {stored_number::i8, "i1"},
                                            {stored_number::i16, "i2"},
                                            {stored_number::u16, "u2"},
                                            {stored_number::u32, "u4"},
                                            {stored_number::u64, "u8"}}};

/// The byte order is '<', '=' (that of the machine, little-endian here), '|' (none) or, where elements have
/// one byte, any.
stored_number type_named(std::string_view text) {
  auto found =
      std::ranges::find(names, text.substr(std::min<std::size_t>(text.size(), 1)), &known_type::second);
  if (found != names.end()) {
    std::string_view orders = size_bytes(found->first) == 1 ? "<=>|" : "<=";
    if (orders.find(text.front()) != std::string_view::npos) return found->first;
    if (text.front() == '>')
      throw bad_input("expected little-endian elements, found the dtype '" + std::string(text) +
                      "': save array.astype('<" + std::string(found->second) + "')");
  }
  throw bad_input(
      "expected one of the dtypes <f4, <f2, <i8, <i4, |u1 and |b1, or <f8, |i1, <i2, <u2, <u4 and <u8, which "
      "are converted, found '" +
      std::string(text) + "': convert the array with astype() and save it again");
}

/// Whether elements in Fortran order are in C order too.
bool is_one_order(const shape& extents) {
  return extents.num_elements() == 0 ||
         std::ranges::count_if(extents.extents(), [](auto extent) { return extent != 1; }) <= 1;
}

std::string name_of(stored_number type) {
  auto name = std::string(std::ranges::find(names, type, &known_type::first)->second);
  return (size_bytes(type) == 1 ? '|' : '<') + name;
}

/// A parser for the Python literals in a header.
class literal_reader {
 public:
  explicit literal_reader(std::string_view text) : rest_(text) {}

  /// Consumes `symbol` if it is next.
  bool take(char symbol) {
    skip_spaces();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char symbol) {
    if (!take(symbol)) fail(std::string("'") + symbol + "'");
  }
  std::string_view text() {
    skip_spaces();
    auto quote = rest_.empty() ? '\0' : rest_.front();
    auto end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : std::string_view::npos;
    if (end == std::string_view::npos) fail("a text in quotes");
    auto result = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return result;
  }
  bool truth() {
    skip_spaces();
    for (std::string_view word : {"True", "False"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    fail("True or False");
  }
  std::int64_t extent() {
    skip_spaces();
    std::int64_t value = 0;
    const auto* end = rest_.data() + rest_.size();
    auto [after, problem] = std::from_chars(rest_.data(), end, value);
    if (problem != std::errc() || rest_.front() == '-') fail("an extent from 0 to 2^63 - 1");
    rest_.remove_prefix(static_cast<std::size_t>(after - rest_.data()));
    return value;
  }
  /// Throws unless only spaces and one newline follow.
  void end() {
    skip_spaces();
    if (rest_ != "\n") fail("spaces and a newline at the end");
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw bad_input("its header is no dictionary of NumPy's: expected " + expected + ", found '" +
                    std::string(rest_.substr(0, 40)) + "'");
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size())); }

  std::string_view rest_;
};

/// "()", "(3,)", "(3, 4)" or "(3, 4,)"; "(3)" is a number to Python.
shape read_shape(literal_reader& reader) {
  std::vector<std::int64_t> extents;
  reader.expect('(');
  while (!reader.take(')')) {
    extents.push_back(reader.extent());
    if (reader.take(',')) continue;
    if (extents.size() == 1) reader.fail("','");
    reader.expect(')');
    break;
  }
  try {
    return shape(std::move(extents));
  } catch (const std::invalid_argument&) {
    throw bad_input("expected a shape of at most 2^58 elements, found a larger one");
  }
}

struct fields {
  std::optional<stored_number> type;
  std::optional<bool> fortran_order;
  std::optional<shape> extents;
};

template <class Value>
void set_once(std::optional<Value>& field, std::string_view key, Value value) {
  if (field) throw bad_input("its header has '" + std::string(key) + "' twice");
  field = std::move(value);
}

fields read_fields(literal_reader& reader) {
  fields result;
  reader.expect('{');
  while (!reader.take('}')) {
    auto key = reader.text();
    reader.expect(':');
    if (key == "descr" && reader.take('['))
      throw bad_input(
          "expected numbers, found a structured array, whose elements have several fields: save each field "
          "as an array of its own, numpy.save(file, array['name'])");
    if (key == "descr")
      set_once(result.type, key, type_named(reader.text()));
    else if (key == "fortran_order")
      set_once(result.fortran_order, key, reader.truth());
    else if (key == "shape")
      set_once(result.extents, key, read_shape(reader));
    else
      throw bad_input("expected descr, fortran_order and shape in its header, found '" + std::string(key) +
                      "'");
    if (reader.take(',')) continue;
    reader.expect('}');
    break;
  }
  reader.end();
  return result;
}

}  // namespace

npy_header parse_npy_header(std::string_view text) {
  literal_reader reader(text);
  auto found = read_fields(reader);
  if (!found.type || !found.fortran_order || !found.extents)
    throw bad_input("its header has no " + std::string(!found.type            ? "descr"
                                                       : !found.fortran_order ? "fortran_order"
                                                                              : "shape"));
  if (*found.fortran_order && !is_one_order(*found.extents))
    throw bad_input(
        "expected the elements in C order, found Fortran order: save numpy.ascontiguousarray(array)");
  return {*found.type, std::move(*found.extents)};
}

std::string to_text(const npy_header& header) {
  if (std::ranges::find(names, header.type, &known_type::first) == names.end())
    throw_invalid("write_npy", "f32, f16, i64, i32, u8 or bool, since NumPy knows no other dtype of ours",
                  "bf16");
  std::string extents;
  for (auto extent : header.extents.extents()) extents += std::to_string(extent) + ", ";
  // A tuple with one element needs a trailing comma.
  if (!extents.empty()) extents.resize(extents.size() - (header.extents.rank() == 1 ? 1 : 2));
  return "{'descr': '" + name_of(header.type) + "', 'fortran_order': False, 'shape': (" + extents + "), }";
}

dtype npy_dtype(const npy_header& header, std::optional<dtype> as, const std::string& option) {
  if (as) return *as;
  if (auto same = same_dtype(header.type)) return *same;
  auto usual = std::string(to_string(usual_dtype(header.type)));
  throw bad_input("expected elements of a dtype of tensors, found " + name_of(header.type) +
                  ": say what to convert them to, for example {." + option + " = dtype::" + usual +
                  "}, or convert the array with astype() and save it again");
}

}  // namespace troupe::detail
