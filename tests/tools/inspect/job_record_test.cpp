#include "inspect/job_record.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fstream>

#include "support/temp_folder.hpp"
#include "tools/inspect/told_job.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Snapshot `number` of a job that goes on.
job_snapshot told_at(int number) {
  auto told = number % 3 == 0 ? told_job_with_finding() : told_job();
  told.at_ms += 500 * number;
  told.parts["job"]["step"] = number;
  return told;
}

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

std::string refusal_of(const std::filesystem::path& file) {
  try {
    job_record record(file);
  } catch (const bad_input& problem) {
    return problem.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a record gives every snapshot as it was, forwards and backwards") {
  temp_folder folder;
  auto file = folder.path() / "job.jsonl";
  constexpr int count = 250;
  {
    job_record_writer writer(file);
    for (int i = 0; i < count; ++i) writer.add(told_at(i));
  }
  job_record record(file);
  CHECK(record.warning().empty());
  REQUIRE(record.size() == count);
  for (int i : {0, 1, 2, 99, 100, 101, 249, 150, 3}) {
    INFO(i);
    auto told = told_at(i), read = record.at(static_cast<std::size_t>(i));
    CHECK(read.at_ms == told.at_ms);
    CHECK(read.parts == told.parts);
  }
  // What does not change is not written again.
  CHECK(std::filesystem::file_size(file) < count * told_job().parts.dump().size() / 2);
}

TEST_CASE("a record that was cut short is read up to there, and says so") {
  temp_folder folder;
  auto file = folder.path() / "job.jsonl";
  {
    job_record_writer writer(file);
    for (int i = 0; i < 3; ++i) writer.add(told_at(i));
  }
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 5);
  job_record record(file);
  CHECK(record.size() == 2);
  CHECK_THAT(record.warning(), ContainsSubstring("line 4 is damaged or cut short"));
}

TEST_CASE("what is no record, or of another version, is refused") {
  temp_folder folder;
  auto file = folder.path() / "job.jsonl";
  CHECK_THAT(refusal_of(file), ContainsSubstring("cannot read"));
  write(file, "");
  CHECK_THAT(refusal_of(file), ContainsSubstring("is no record"));
  write(file, "{\"event\":\"step\"}\n");
  CHECK_THAT(refusal_of(file), ContainsSubstring("is no record"));
  write(file, "{\"format\":\"troupe inspect record\",\"version\":2}\n");
  CHECK_THAT(refusal_of(file), ContainsSubstring("version 2, this program reads version 3"));
  write(file, "{\"format\":\"troupe inspect record\",\"version\":3}\n");
  CHECK_THAT(refusal_of(file), ContainsSubstring("has no snapshot"));
  write(file, "{\"format\":\"troupe inspect record\",\"version\":3}\n{\"at_ms\":1,\"parts\":{}}\n");
  CHECK_THAT(refusal_of(file), ContainsSubstring("has no snapshot"));  // the first must be whole
}

TEST_CASE("a record that cannot be written is an error") {
  auto refusal_to_write = [](const std::filesystem::path& file) -> std::string {
    try {
      job_record_writer writer(file);
    } catch (const bad_input& problem) {
      return problem.what();
    }
    return {};
  };
  CHECK_THAT(refusal_to_write("/nowhere/job.jsonl"),
             ContainsSubstring("cannot write the record /nowhere/job.jsonl: No such file or directory"));
  temp_folder folder;
  CHECK_THAT(refusal_to_write(folder.path()), ContainsSubstring("cannot write"));
}

TEST_CASE("a record is written over no file that a link leads to, and is for its user alone") {
  temp_folder folder;
  auto kept = folder.path() / "kept", link = folder.path() / "job.jsonl", own = folder.path() / "own.jsonl";
  write(kept, "precious");
  std::filesystem::create_symlink(kept, link);
  CHECK_THROWS_MATCHES(job_record_writer(link), bad_input,
                       MessageMatches(ContainsSubstring("it is a symbolic link")));
  std::filesystem::create_hard_link(kept, folder.path() / "second");
  CHECK_THROWS_MATCHES(job_record_writer(folder.path() / "second"), bad_input,
                       MessageMatches(ContainsSubstring("hard links")));
  CHECK(std::filesystem::file_size(kept) == std::string("precious").size());
  write(own, "of an earlier job");
  job_record_writer(own).add(told_job());
  CHECK(job_record(own).size() == 1);
  using std::filesystem::perms;
  CHECK(std::filesystem::status(own).permissions() == (perms::owner_read | perms::owner_write));
}
