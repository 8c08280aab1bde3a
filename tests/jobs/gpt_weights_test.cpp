// The gpt example with weights in GPT-2's published form.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "jobs/job.hpp"
#include "support/temp_folder.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe::testing;

namespace {

process_result run_gpt(const std::vector<std::string>& options) {
  run_options run;
  run.command = {GPT_PROGRAM};
  run.command.insert(run.command.end(), options.begin(), options.end());
  run.without = {"RANK", "WORLD_SIZE"};
  return run_process(run);
}

const std::vector<std::string> tiny_job{"--size",  "tiny", "--steps",        "4",
                                        "--batch", "8",    "--microbatches", "4"};

std::vector<std::string> tiny_with(const std::vector<std::string>& more) {
  auto options = tiny_job;
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

}  // namespace

TEST_CASE("a trained GPT is exported in the published form, and sampled and trained further from it") {
  temp_folder folder;
  auto snapshots = (folder.path() / "snapshots").string();
  auto file = (folder.path() / "model.safetensors").string();
  run_local(tiny_with({"--devices", "3", "--snapshot-dir", snapshots}), example::gpt);

  std::vector<std::string> sampling{"--size", "tiny", "--prompt", "The ", "--length", "12"};
  auto from = [&](const std::string& source, std::vector<std::string> more = {}) {
    auto options = sampling;
    options.insert(options.end(), {"--sample-from", source});
    options.insert(options.end(), more.begin(), more.end());
    auto ran = run_gpt(options);
    CHECK(ran.exit_code == 0);
    return ran.output;
  };
  auto text = from(snapshots, {"--export", file});
  CHECK(text.starts_with("The "));
  CHECK(from(file) == text);
  CHECK(from(file, {"--prompt-tokens", "84 104 101 32"}).starts_with("84 104 101 32 "));

  auto fresh = run_local(tiny_job, example::gpt).weights_sha256();
  auto further = run_local(tiny_with({"--weights", file}), example::gpt).weights_sha256();
  CHECK(further != fresh);
  CHECK(run_launched(3, tiny_with({"--weights", file}), {}, example::gpt).weights_sha256() == further);
}

TEST_CASE(
    "weights of another size, a vocabulary without a tokenizer and unclear options are refused with what to "
    "do") {
  temp_folder folder;
  auto snapshots = (folder.path() / "snapshots").string();
  auto file = (folder.path() / "model.safetensors").string();
  run_local(tiny_with({"--snapshot-dir", snapshots}), example::gpt);
  REQUIRE(
      run_gpt({"--size", "tiny", "--length", "0", "--sample-from", snapshots, "--export", file}).exit_code ==
      0);

  auto wrong = run_gpt({"--size", "small", "--weights", file});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.errors, ContainsSubstring("wte.weight is f32[256, 64], expected [256, 256]"));
  auto words = run_gpt({"--size", "gpt2-124m", "--sample-from", file});
  CHECK(words.exit_code == 2);
  CHECK_THAT(words.errors, ContainsSubstring("--prompt-tokens"));
  auto bytes = run_gpt({"--size", "gpt2-124m"});
  CHECK(bytes.exit_code == 2);
  CHECK_THAT(bytes.errors, ContainsSubstring("trains on bytes"));
  auto unclear = run_gpt({"--size", "tiny", "--checkpoint-blocks", "1"});
  CHECK(unclear.exit_code == 2);
  CHECK_THAT(unclear.errors, ContainsSubstring("--checkpoint-blocks 1: expected yes or no"));
  auto deep = run_gpt({"--size", "tiny", "--layers", "2.5"});
  CHECK(deep.exit_code == 2);
  CHECK_THAT(deep.errors, ContainsSubstring("--layers 2.5: expected a whole number of blocks"));
  CHECK_THAT(run_gpt({"--size", "tiny", "--layers", "abc"}).errors, ContainsSubstring("1 to 1000"));
  CHECK(run_gpt({"--size", "tiny", "--layers", "1", "--weights", file}).exit_code == 2);
  auto silent = run_gpt({"--size", "tiny", "--prompt", "We"});
  CHECK(silent.exit_code == 2);
  CHECK_THAT(silent.errors, ContainsSubstring("add --sample-from"));
  auto both = run_gpt({"--size", "tiny", "--sample-from", file, "--memory", "yes"});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.errors, ContainsSubstring("leave --weights, --write-profile and --memory out"));
  auto number = run_gpt({"--size", "tiny", "--sample-from", file, "--prompt-tokens", "1 256"});
  CHECK(number.exit_code == 2);
  CHECK_THAT(number.errors, ContainsSubstring("whole numbers below 256"));
}
