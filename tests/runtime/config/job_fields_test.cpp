#include "troupe/config/job_fields.hpp"

#include <catch2/catch_test_macros.hpp>
#include <set>

#include "troupe/error/errors.hpp"

TEST_CASE("every field has a name and a member of its own, and help") {
  std::set<std::string_view> names;
  const auto fields = troupe::config::job_fields();
  for (const auto& field : fields) {
    CAPTURE(field.name);
    CHECK(names.insert(field.name).second);
    CHECK_FALSE(field.help.empty());
    for (const auto& other : fields) CHECK((field.member == other.member) == (&field == &other));
  }
}

TEST_CASE("every field prints as a text that can be read back") {
  const troupe::job_options defaults;
  for (const auto& field : troupe::config::job_fields()) {
    CAPTURE(field.name);
    troupe::job_options copy;
    field.set(field.text(defaults), copy);
    CHECK(field.text(copy) == field.text(defaults));
  }
}

TEST_CASE("a field refuses the text of another type") {
  troupe::job_options options;
  auto set = [&](std::string_view name, std::string_view text) {
    troupe::config::find_job_field(name)->set(text, options);
  };
  CHECK_THROWS_AS(set("batch", "many"), troupe::bad_input);
  CHECK_THROWS_AS(set("batch", "8.5"), troupe::bad_input);
  CHECK_THROWS_AS(set("batch", "99999999999"), troupe::bad_input);
  CHECK_THROWS_AS(set("seed", "-1"), troupe::bad_input);
  CHECK_THROWS_AS(set("json", "maybe"), troupe::bad_input);
  CHECK_THROWS_AS(set("learning_rate", "fast"), troupe::bad_input);
  CHECK_THROWS_AS(set("schedule", "random"), troupe::bad_input);
  CHECK_THROWS_AS(set("precision", "i64"), troupe::bad_input);
  CHECK_THROWS_AS(set("join_timeout", "-1"), troupe::bad_input);
  CHECK(options.batch == troupe::job_options().batch);
  set("precision", "bf16");
  CHECK(options.precision == troupe::dtype::bf16);
  set("seed", "18446744073709551615");
  CHECK(options.seed == ~std::uint64_t{0});
}

TEST_CASE("a name that no field has is not found") {
  CHECK(troupe::config::find_job_field("bacth") == nullptr);
}
