#include "troupe/snapshot/manifest.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>
#include <random>

#include "example_parts.hpp"
#include "troupe/files/checksum.hpp"
#include "troupe/files/snapshot_error.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;

namespace {

snapshot_manifest example() {
  auto manifest = testing::example_manifest(
      18'446'744'073'709'551'615U,
      {{{0}, "stage-0000.part", 5, "ab", "here"}, {{1}, "stage-0001.part", 6, "cd", "there"}});
  manifest.identity.emplace_back("model", "mlp \"784-256\"\n");
  manifest.created = "2024-06-07T08:09:10Z";
  manifest.calls = manifest_file{"calls.part", 7, "ef", "here"};
  return manifest;
}

}  // namespace

TEST_CASE("a manifest is parsed from its text") {
  CHECK(manifest_from_text(manifest_text(example())) == example());
  auto without = example();
  without.calls.reset();
  CHECK(manifest_from_text(manifest_text(without)) == without);
  auto of_data = example();
  of_data.data = "60000 samples of [28, 28]";
  CHECK(manifest_from_text(manifest_text(of_data)) == of_data);
}

TEST_CASE("a manifest says what may be another when a job resumes, which one of format version 6 does not") {
  auto manifest = example();
  manifest.settings = {{"optimizer", "Adam"}, {"optimizer lr", "0.001"}};
  CHECK(manifest_from_text(manifest_text(manifest)) == manifest);
  CHECK(optimizer_in(*manifest.settings) == "Adam");
  CHECK(manifest_from_text(manifest_text(manifest)).counts_steps);
  std::string text = R"({"troupe_snapshot":6,"job_id":"job-7","step":5,"generation":3,"num_stages":1,)"
                     R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["seed","7"]],)"
                     R"("data":null,"calls":null,"parts":[)"
                     R"({"stage":0,"file":"stage-0000.part","size_bytes":5,"checksum":"ab","host":"here"}])";
  auto covered = text + "}";
  auto sum = files::checksum_of(std::as_bytes(std::span(covered)));
  auto read = manifest_from_text(text + R"(,"checksum":")" + wire::to_hex(sum) + R"("})");
  CHECK_FALSE(read.settings);
  CHECK_FALSE(read.counts_steps);
}

TEST_CASE("the results of calls in a manifest of format version 7 do not say what was asked for") {
  std::string text = R"({"troupe_snapshot":7,"job_id":"job-7","step":5,"generation":3,"num_stages":1,)"
                     R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["seed","7"]],)"
                     R"("settings":null,"data":null,)"
                     R"("calls":{"file":"calls.part","size_bytes":7,"checksum":"ef","host":"here"},"parts":[)"
                     R"({"stage":0,"file":"stage-0000.part","size_bytes":5,"checksum":"ab","host":"here"}])";
  auto covered = text + "}";
  auto sum = files::checksum_of(std::as_bytes(std::span(covered)));
  auto read = manifest_from_text(text + R"(,"checksum":")" + wire::to_hex(sum) + R"("})");
  CHECK(read.calls);
  CHECK_FALSE(read.calls_can_be_repeated);
  CHECK(manifest_from_text(manifest_text(example())).calls_can_be_repeated);
}

TEST_CASE("settings that differ are named with both values, but for the options of another optimizer") {
  using named_values = std::vector<std::pair<std::string, std::string>>;
  named_values adam{
      {"optimizer", "Adam"}, {"optimizer lr", "0.1"}, {"optimizer beta1", "0.9"}, {"loss", "MSELoss"}};
  auto other = adam;
  CHECK(settings_differences(adam, adam).empty());
  other[1].second = "0.01";
  other[3].second = "CrossEntropy";
  CHECK(settings_differences(other, adam) ==
        std::vector<std::string>{"optimizer lr was 0.1 in the snapshot, and is 0.01",
                                 "loss was MSELoss in the snapshot, and is CrossEntropy"});
  named_values sgd{{"optimizer", "SGD"}, {"optimizer lr", "1"}, {"loss", "MSELoss"}};
  CHECK(settings_differences(sgd, adam).empty());
  CHECK(settings_differences({{"optimizer", "Adam"}}, {{"optimizer", "Adam"}, {"optimizer lr", "1"}}) ==
        std::vector<std::string>{"optimizer lr was 1 in the snapshot, and is none"});
}

TEST_CASE("a manifest says which parts are those of all replicas") {
  auto manifest = example();
  manifest.parts[1].content = layout::replica_content::equal;
  auto text = manifest_text(manifest);
  CHECK_THAT(text, ContainsSubstring("\"replicas\": \"equal\""));
  CHECK(manifest_from_text(text) == manifest);
  CHECK_THAT(manifest_text(example()), !ContainsSubstring("replicas"));
}

TEST_CASE("a manifest of format version 5 has a part for each replica") {
  std::string text = R"({"troupe_snapshot":5,"job_id":"job-7","step":5,"generation":3,"num_stages":1,)"
                     R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["seed","7"]],)"
                     R"("data":null,"calls":null,"parts":[)"
                     R"({"stage":0,"file":"stage-0000.part","size_bytes":5,"checksum":"ab","host":"here"},)"
                     R"({"stage":0,"replica":1,"file":"stage-0000-replica-0001.part","size_bytes":6,)"
                     R"("checksum":"cd","host":"here"}])";
  auto covered = text + "}";
  auto sum = files::checksum_of(std::as_bytes(std::span(covered)));
  auto read = manifest_from_text(text + R"(,"checksum":")" + wire::to_hex(sum) + R"("})");
  REQUIRE(read.parts.size() == 2);
  for (const auto& part : read.parts) CHECK(part.content == layout::replica_content::own);
  CHECK_FALSE(read.counts_steps);
}

TEST_CASE("a manifest of format version 1 is read without its results of calls") {
  std::string text = R"({"troupe_snapshot":1,"job_id":"job-7","step":5,"generation":3,"num_stages":1,)"
                     R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["seed","7"]],)"
                     R"("calls":"00ff17","parts":[{"stage":0,"file":"stage-0000.part","size_bytes":5,)"
                     R"("checksum":"ab","host":"here"}])";
  auto covered = text + "}";
  auto sum = files::checksum_of(std::as_bytes(std::span(covered)));
  auto read = manifest_from_text(text + R"(,"checksum":")" + wire::to_hex(sum) + R"("})");
  CHECK(read.step == 5);
  CHECK(read.parts.size() == 1);
  CHECK_FALSE(read.calls);
}

TEST_CASE("a manifest of format version 2 lists stages, and its partition is no part of its identity") {
  std::string text = R"({"troupe_snapshot":2,"job_id":"job-7","step":5,"generation":3,"num_stages":2,)"
                     R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["seed","7"],)"
                     R"(["stages","2"],["stages begin with","2.weight"]],"calls":null,"parts":[)"
                     R"({"stage":0,"file":"stage-0000.part","size_bytes":5,"checksum":"ab","host":"here"},)"
                     R"({"stage":1,"file":"stage-0001.part","size_bytes":6,"checksum":"cd","host":"here"}])";
  auto covered = text + "}";
  auto sum = files::checksum_of(std::as_bytes(std::span(covered)));
  auto read = manifest_from_text(text + R"(,"checksum":")" + wire::to_hex(sum) + R"("})");
  REQUIRE(read.parts.size() == 2);
  CHECK(read.parts[1].part == layout::part_id{{.stage = 1}});
  CHECK_FALSE(read.parts[1].contents);
  CHECK(read.identity == std::vector<std::pair<std::string, std::string>>{{"seed", "7"}});
}

TEST_CASE("a manifest of format version 3 is read without its results of calls") {
  std::string text = R"({"troupe_snapshot":3,"job_id":"job-7","step":5,"generation":3,"num_stages":1,)"
                     R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["stages","7"]],)"
                     R"("calls":{"file":"calls.part","size_bytes":7,"checksum":"ef","host":"here"},)"
                     R"("parts":[{"stage":0,"file":"stage-0000.part","size_bytes":5,)"
                     R"("checksum":"ab","host":"here"}])";
  auto covered = text + "}";
  auto sum = files::checksum_of(std::as_bytes(std::span(covered)));
  auto read = manifest_from_text(text + R"(,"checksum":")" + wire::to_hex(sum) + R"("})");
  CHECK(read.identity.size() == 1);
  CHECK(read.parts.size() == 1);
  CHECK_FALSE(read.calls);
}

TEST_CASE("a manifest of format version 4 is read without its data") {
  std::string text = R"({"troupe_snapshot":4,"job_id":"job-7","step":5,"generation":3,"num_stages":1,)"
                     R"("numeric_class":"avx2","created":"2024-06-07T08:09:10Z","identity":[["seed","7"],)"
                     R"(["stream","a stream of 3 shards"]],"calls":null,)"
                     R"("parts":[{"stage":0,"file":"stage-0000.part","size_bytes":5,)"
                     R"("checksum":"ab","host":"here"}])";
  auto covered = text + "}";
  auto sum = files::checksum_of(std::as_bytes(std::span(covered)));
  auto read = manifest_from_text(text + R"(,"checksum":")" + wire::to_hex(sum) + R"("})");
  CHECK(read.identity == std::vector<std::pair<std::string, std::string>>{{"seed", "7"}});
  CHECK_FALSE(read.data);
}

TEST_CASE("a manifest that lists its tensors is parsed from its text, and must list each element once") {
  auto manifest = example();
  tensor_contents half{"0.weight", dtype::bf16, {4, 2}, {{{0, 0}, {2, 2}}, {{2, 0}, {1, 1}}}, 1, 5, 1};
  auto rest = half;
  rest.boxes = {{{0, 0}, {1, 1}}, {{2, 1}, {1, 1}}, {{3, 0}, {1, 2}}};
  rest.begin = 0;
  rest.end = 4;
  layout::part_id first{{.stage = 1, .replica = 1}}, second{{.stage = 1, .replica = 1}, 2};
  manifest.parts[0].contents = {whole_contents({"1.bias", tensor::zeros({3}, dtype::i64)})};
  manifest.parts[1] = {first, "stage-0001-replica-0001.part", 6, "cd", "there", {{half}}};
  manifest.parts.push_back({second, "stage-0001-replica-0001-shard-0002.part", 6, "cd", "there", {{rest}}});
  CHECK(manifest_from_text(manifest_text(manifest)) == manifest);
  manifest.parts[2].contents->at(0).end = 3;
  CHECK_THROWS_WITH(manifest_from_text(manifest_text(manifest)),
                    ContainsSubstring("no part holds [3:4, 1:2] of 0.weight (bf16[4, 2])"));
  manifest.parts[2].contents->at(0).begin = -1;
  CHECK_THROWS_WITH(manifest_from_text(manifest_text(manifest)), ContainsSubstring("elements -1 to 3"));
  auto unknown = manifest;
  unknown.parts[2].contents->at(0).whole = {-4, 2};
  CHECK_THROWS_AS(manifest_from_text(manifest_text(unknown)), files::snapshot_error);
}

TEST_CASE("a manifest is readable JSON, and may be parsed after its white space changed") {
  auto text = manifest_text(example());
  CHECK_THAT(text,
             ContainsSubstring("\"numeric_class\": \"avx2\"") && ContainsSubstring("\"created\": \"2024-"));
  auto compact = text;
  std::erase(compact, '\n');
  CHECK(manifest_from_text(compact) == example());
}

TEST_CASE("a manifest has the time when it was written, unless the text is no time") {
  auto manifest = example();
  CHECK(time_written(manifest) == std::chrono::sys_days(std::chrono::year(2024) / 6 / 7) +
                                      std::chrono::hours(8) + std::chrono::minutes(9) +
                                      std::chrono::seconds(10));
  for (std::string text : {"", "yesterday", "2024-06-07", "2024-13-07T08:09:10Z", "2024-06-07T08:09:10Z?"}) {
    manifest.created = text;
    CHECK_FALSE(time_written(manifest));
  }
}

TEST_CASE("a changed manifest is refused or has the same content") {
  std::mt19937_64 random(42);
  auto good = manifest_text(example());
  for (std::size_t at = 0; at < good.size(); ++at) {
    auto bad = good;
    bad[at] = static_cast<char>(random());
    std::optional<snapshot_manifest> read;
    try {
      read = manifest_from_text(bad);
    } catch (const files::snapshot_error&) {
    }
    CHECK((!read || *read == example()));
  }
}

TEST_CASE("every cut of a manifest is refused") {
  auto good = manifest_text(example());
  for (std::size_t size = 0; size + 2 < good.size(); ++size)
    CHECK_THROWS_AS(manifest_from_text(good.substr(0, size)), files::snapshot_error);
}

TEST_CASE("the error of a manifest names what is wrong") {
  CHECK_THROWS_WITH(manifest_from_text("[1, 2"), ContainsSubstring("no manifest"));
  CHECK_THROWS_WITH(manifest_from_text("{}"), ContainsSubstring("troupe_snapshot"));
  CHECK_THROWS_WITH(manifest_from_text(R"({"troupe_snapshot": 9})"), ContainsSubstring("version is 9"));
  auto edited = manifest_text(example());
  edited.replace(edited.find("avx2"), 4, "sse4");
  CHECK_THROWS_WITH(manifest_from_text(edited), ContainsSubstring("damaged or was edited"));
}

TEST_CASE("a manifest with inconsistent parts is refused") {
  auto missing = example();
  missing.parts.pop_back();
  CHECK_THROWS_WITH(manifest_from_text(manifest_text(missing)),
                    ContainsSubstring("parts of 1 of its 2 stages"));
  auto twice = example();
  twice.parts[1] = twice.parts[0];
  CHECK_THROWS_WITH(manifest_from_text(manifest_text(twice)),
                    ContainsSubstring("it lists stage 0 after stage 0"));
  auto misnamed = example();
  misnamed.parts[1].file = "stage-0000.part";
  CHECK_THROWS_WITH(manifest_from_text(manifest_text(misnamed)),
                    ContainsSubstring("stage-0001.part is expected"));
  auto elsewhere = example();
  elsewhere.parts[0].file = "../../stage-0000.part";
  CHECK_THROWS_WITH(manifest_from_text(manifest_text(elsewhere)), ContainsSubstring("../../"));
  auto calls_elsewhere = example();
  calls_elsewhere.calls->file = "../calls.part";
  CHECK_THROWS_WITH(manifest_from_text(manifest_text(calls_elsewhere)), ContainsSubstring("../calls.part"));
}

TEST_CASE("a manifest may contain text that is no UTF-8") {
  auto manifest = example();
  manifest.job_id = "caf\xe9";
  CHECK(manifest_from_text(manifest_text(manifest)).job_id == "caf\xef\xbf\xbd");
}

TEST_CASE("what differs between a job and a snapshot is named, also what only one of them has") {
  CHECK(identity_differences({{"seed", "7"}, {"batch", "32"}}, {{"seed", "7"}, {"batch", "32"}}).empty());
  CHECK(identity_differences({{"seed", "7"}, {"precision", "bf16"}}, {{"seed", "1"}, {"clip", "2"}}) ==
        "seed is 7, the snapshot has 1; precision is bf16, the snapshot has the default; "
        "clip has the default value, the snapshot has 2");
}
