#include "runtime/collective/cases/collective_case.hpp"
#include "runtime/collective/cases/elements.hpp"

namespace troupe::testing {
namespace {

/// Element i of the input of `member`.
double input_element(int member, std::int64_t i) { return static_cast<double>((member * 31 + i * 7) % 101); }

void all_gather_of_equal_parts(members& given) {
  auto& group = given.all;
  for (auto type : moved_types)
    for (auto part : case_sizes(type)) {
      auto own = filled(
          part, type, [&](std::int64_t i) { return input_element(group.rank(), i); }, placement::shifted);
      auto all = placed(part * group.size(), type);
      group.all_gather(own, all).wait();
      expect_elements(all,
                      [&](std::int64_t i) { return input_element(static_cast<int>(i / part), i % part); });
    }
}

void all_gather_in_place(members& given) {
  auto& group = given.all;
  for (auto type : moved_types)
    for (auto part : case_sizes(type)) {
      auto all = placed(part * group.size(), type);
      auto own = all.rows(group.rank() * part, part);
      fill(own, [&](std::int64_t i) { return input_element(group.rank(), i); });
      group.all_gather(own, all).wait();
      expect_elements(all,
                      [&](std::int64_t i) { return input_element(static_cast<int>(i / part), i % part); });
    }
}

void all_gather_of_unequal_parts(members& given) {
  auto& group = given.all;
  for (auto type : moved_types)
    for (std::int64_t step : {1, 700, 3000}) {
      std::vector<std::int64_t> parts;  // the first member's part is empty
      std::int64_t total = 0;
      for (int i = 0; i < group.size(); ++i) total += parts.emplace_back(i * step);
      auto own =
          filled(group.rank() * step, type, [&](std::int64_t i) { return input_element(group.rank(), i); });
      auto all = placed(total, type);
      group.all_gather(own, all, parts).wait();
      std::int64_t begin = 0;
      for (int i = 0; i < group.size(); ++i) {
        expect_elements(all.rows(begin, i * step), [&](std::int64_t at) { return input_element(i, at); });
        begin += i * step;
      }
    }
}

void broadcast_from_every_root(members& given) {
  auto& group = given.all;
  for (auto type : moved_types)
    for (auto count : case_sizes(type))
      for (int root = 0; root < group.size(); ++root) {
        auto x = filled(
            count, type, [&](std::int64_t i) { return input_element(group.rank(), i); },
            root % 2 == 0 ? placement::aligned : placement::shifted);
        group.broadcast(x, root).wait();
        expect_elements(x, [&](std::int64_t i) { return input_element(root, i); });
      }
}

void gather_to_every_root(members& given) {
  auto& group = given.all;
  for (auto type : moved_types)
    for (auto part : case_sizes(type))
      for (int root = 0; root < group.size(); ++root) {
        auto own = filled(part, type, [&](std::int64_t i) { return input_element(group.rank(), i); });
        auto all = group.rank() == root ? placed(part * group.size(), type) : tensor();
        group.gather(own, all, root).wait();
        if (group.rank() == root)
          expect_elements(
              all, [&](std::int64_t i) { return input_element(static_cast<int>(i / part), i % part); });
      }
}

void scatter_from_every_root(members& given) {
  auto& group = given.all;
  for (auto type : moved_types)
    for (auto part : case_sizes(type))
      for (int root = 0; root < group.size(); ++root) {
        auto all = group.rank() != root ? tensor() : filled(part * group.size(), type, [&](std::int64_t i) {
          return input_element(root, i);
        });
        auto own = placed(part, type, placement::shifted);
        group.scatter(all, own, root).wait();
        expect_elements(own, [&](std::int64_t i) { return input_element(root, group.rank() * part + i); });
      }
}

void all_to_all_of_all_types(members& given) {
  auto& group = given.all;
  for (auto type : moved_types)
    for (auto part : case_sizes(type)) {
      auto x =
          filled(part * group.size(), type, [&](std::int64_t i) { return input_element(group.rank(), i); });
      auto result = placed(part * group.size(), type, placement::shifted);
      group.all_to_all(x, result).wait();
      expect_elements(result, [&](std::int64_t i) {
        return input_element(static_cast<int>(i / part), group.rank() * part + i % part);
      });
    }
}

void copies_of_many_elements(members& given) {
  auto& group = given.all;
  std::int64_t part = 270001;  // more than a mebibyte
  auto own = filled(part, dtype::f32, [&](std::int64_t i) { return input_element(group.rank(), i); });
  auto all = placed(part * group.size(), dtype::f32);
  auto result = placed(part * group.size(), dtype::f32);
  group.all_gather(own, all).wait();
  expect_elements(all, [&](std::int64_t i) { return input_element(static_cast<int>(i / part), i % part); });
  group.all_to_all(all, result).wait();
  expect_elements(result, [&](std::int64_t i) { return input_element(group.rank(), i % part); });
  group.broadcast(own, group.size() - 1).wait();
  expect_elements(own, [&](std::int64_t i) { return input_element(group.size() - 1, i); });
}

}  // namespace

std::vector<collective_case> copying_cases() {
  return {{"all_gather delivers all parts in the order of the members", all_gather_of_equal_parts},
          {"all_gather in place reads its part from the output", all_gather_in_place},
          {"all_gather of unequal parts, an empty one among them", all_gather_of_unequal_parts},
          {"broadcast from every root", broadcast_from_every_root},
          {"gather to every root", gather_to_every_root},
          {"scatter from every root", scatter_from_every_root},
          {"all_to_all exchanges all parts", all_to_all_of_all_types},
          {"copies of many elements", copies_of_many_elements}};
}

}  // namespace troupe::testing
