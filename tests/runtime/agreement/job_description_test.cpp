#include "troupe/agreement/job_description.hpp"

#include <catch2/catch_test_macros.hpp>

using troupe::agreement::description_difference;
using troupe::agreement::job_description;

namespace {

job_description described(const std::vector<std::pair<std::string, std::string>>& fields) {
  job_description made;
  for (const auto& [name, value] : fields) made.add(name, value);
  return made;
}

std::string difference(std::vector<job_description> of_ranks) {
  std::map<int, job_description> by_rank;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank)
    by_rank.emplace(static_cast<int>(rank), std::move(of_ranks[rank]));
  return description_difference(by_rank).value_or("");
}

}  // namespace

TEST_CASE("any number of equal descriptions agree") {
  auto same = described({{"seed", "1"}, {"batch", "64"}});
  CHECK(difference({}).empty());
  CHECK(difference({same}).empty());
  CHECK(difference({same, same, same}).empty());
  CHECK(same.hash() == described({{"seed", "1"}, {"batch", "64"}}).hash());
}

TEST_CASE("of two descriptions that differ both are named with their values") {
  CHECK(difference({described({{"seed", "1"}, {"batch", "64"}}),
                    described({{"seed", "7"}, {"batch", "64"}})}) == "seed: rank 1 has 7, rank 0 has 1");
}

TEST_CASE("of more descriptions the value of the majority is named last") {
  auto common = described({{"microbatches", "8"}}), other = described({{"microbatches", "4"}});
  CHECK(difference({common, other, common}) == "microbatches: rank 1 has 4, ranks 0 and 2 have 8");
  CHECK(difference({other, common, common, common}) == "microbatches: rank 0 has 4, ranks 1, 2 and 3 have 8");
  CHECK(difference({common, other, other, common}) ==
        "microbatches: ranks 1 and 2 have 4, ranks 0 and 3 have 8");
  CHECK(difference({common, other, described({{"microbatches", "2"}})}) ==
        "microbatches: rank 2 has 2, rank 1 has 4, rank 0 has 8");
}

TEST_CASE("every field that differs is named, up to a few") {
  auto many = [](const std::string& value) {
    job_description made;
    for (int i = 0; i < 9; ++i) made.add("field " + std::to_string(i), value);
    return made;
  };
  auto text = difference({many("a"), many("b")});
  CHECK(text.find("field 0: rank 1 has b, rank 0 has a; field 1: ") == 0);
  CHECK(text.find("field 3") != std::string::npos);
  CHECK(text.find("field 4") == std::string::npos);
  CHECK(text.ends_with("; and 5 more"));
}

TEST_CASE("a field that only one description has is a difference") {
  CHECK(difference({described({{"module 0", "Linear"}}), described({})}) ==
        "module 0: rank 1 has none, rank 0 has Linear");
}

TEST_CASE("an unknown value agrees with every value, and the other values are still compared") {
  auto unknown = described({{"samples", ""}}), some = described({{"samples", "u8 1234"}});
  CHECK(difference({unknown, some, unknown}).empty());
  CHECK(difference({some, unknown, described({{"samples", "u8 5678"}})}) ==
        "samples: rank 2 has u8 5678, rank 0 has u8 1234");
}

TEST_CASE("the same fields in another order are a difference") {
  auto text = difference({described({{"a", "1"}, {"b", "2"}}), described({{"b", "2"}, {"a", "1"}})});
  CHECK(text == "order: rank 1 has b first, rank 0 has a first");
}

TEST_CASE("hashes differ if names, values, their order or their boundaries differ") {
  auto hash = [](const std::vector<std::pair<std::string, std::string>>& fields) {
    return described(fields).hash();
  };
  CHECK(hash({}) == 0);
  CHECK(hash({{"", ""}}) != 0);
  CHECK(hash({{"a", "1"}}) != hash({{"a", "2"}}));
  CHECK(hash({{"a", "1"}}) != hash({{"b", "1"}}));
  CHECK(hash({{"a", "1"}, {"b", "2"}}) != hash({{"b", "2"}, {"a", "1"}}));
  CHECK(hash({{"ab", "c"}}) != hash({{"a", "bc"}}));
}

TEST_CASE("short hashes of different bytes differ") {
  auto hash = [](const std::string& text) {
    return troupe::agreement::short_hash(std::as_bytes(std::span(text)));
  };
  CHECK(hash("") == "cbf29ce484222325");  // FNV-1a's offset basis
  CHECK(hash("a") == "af63dc4c8601ec8c");
  CHECK(hash("b") != hash("a"));
}
