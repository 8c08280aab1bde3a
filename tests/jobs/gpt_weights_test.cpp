// The gpt example with weights in GPT-2's published form.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

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

TEST_CASE("a trained GPT is exported in the published form, and sampled and trained further from it",
          "[gpt_weights]") {
  temp_folder folder;
  auto snapshots = (folder.path() / "snapshots").string();
  auto file = (folder.path() / "model.safetensors").string();
  run_local(tiny_with({"--devices", "3", "--snapshot-dir", snapshots}), example::gpt);

  std::vector<std::string> sampling{"--size", "tiny", "--length", "12"};
  auto from = [&](const std::string& source, std::vector<std::string> more = {"--prompt", "The "}) {
    auto options = sampling;
    options.insert(options.end(), {"--sample-from", source});
    options.insert(options.end(), more.begin(), more.end());
    auto ran = run_gpt(options);
    CHECK(ran.exit_code == 0);
    return ran.output;
  };
  auto text = from(snapshots, {"--prompt", "The ", "--export", file});
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
    "do",
    "[gpt_weights]") {
  temp_folder folder;
  auto snapshots = (folder.path() / "snapshots").string();
  auto file = (folder.path() / "model.safetensors").string();
  run_local(tiny_with({"--snapshot-dir", snapshots}), example::gpt);
  REQUIRE(
      run_gpt({"--size", "tiny", "--length", "0", "--sample-from", snapshots, "--export", file}).exit_code ==
      0);

  auto wrong = run_gpt({"--size", "small", "--weights", file});
  CHECK(wrong.exit_code == 2);
  CHECK_THAT(wrong.errors, ContainsSubstring("the file has 2 blocks, the model 4"));
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
  CHECK_THAT(deep.errors, ContainsSubstring("--layers: expected a whole number, got '2.5'"));
  CHECK_THAT(run_gpt({"--size", "tiny", "--layers", "0x10"}).errors, ContainsSubstring("got '0x10'"));
  CHECK_THAT(run_gpt({"--size", "tiny", "--layers", "1001"}).errors, ContainsSubstring("between 1 and 1000"));
  CHECK(run_gpt({"--size", "tiny", "--layers", "1", "--weights", file}).exit_code == 2);
  auto silent = run_gpt({"--size", "tiny", "--prompt", "We"});
  CHECK(silent.exit_code == 2);
  CHECK_THAT(silent.errors, ContainsSubstring("add --sample-from"));
  auto both = run_gpt({"--size", "tiny", "--sample-from", file, "--memory", "yes"});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.errors, ContainsSubstring("leave --weights, --write-profile and --memory out"));
}

TEST_CASE("what to write, and how it begins, is refused with the option's name and what it takes",
          "[gpt_weights]") {
  auto check = [](const std::vector<std::string>& options, const std::string& text) {
    std::vector<std::string> command{"--size", "tiny", "--sample-from", "not-looked-at"};
    command.insert(command.end(), options.begin(), options.end());
    auto result = run_gpt(command);
    INFO(options[0] << ' ' << options[1] << '\n' << result.errors);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, ContainsSubstring(text));
  };
  for (const auto* length : {"inf", "1e400", "2.5", "0x10"})
    check({"--length", length}, "--length: expected a whole number, got '" + std::string(length) + "'");
  check({"--length", "-1"}, "--length must be 0 or more, got -1");
  check({"--temperature", "inf"}, "--temperature must be a number of 0 or more");
  check({"--temperature", "warm"}, "--temperature: expected a number, got 'warm'");
  check({"--prompt", ""}, "--prompt is empty");
  check({"--prompt-tokens", " "}, "--prompt-tokens has no token id");
  check({"--prompt-tokens", "1 256"}, "token ids below 256 with spaces between them");
  check({"--prompt-tokens", "1,2,x"}, "with spaces between them, such as \"84 104 101\", got '1,2,x'");
  check({"--prompt-tokens", "1 2", "--prompt", "We"}, "give one of them");
  check({"--steps", "5"}, "--steps was given, but --sample-from, which writes text without training");
}

TEST_CASE("a folder without weights, and weights of a model of another size, are refused as bad input",
          "[gpt_weights]") {
  temp_folder folder;
  auto snapshots = (folder.path() / "snapshots").string();
  run_local(tiny_with({"--snapshot-dir", snapshots}), example::gpt);
  auto other = run_gpt({"--size", "small", "--sample-from", snapshots});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.errors,
             ContainsSubstring("Use the --size, --layers and --vocabulary that it was trained with"));
  auto empty = folder.path() / "empty";
  std::filesystem::create_directory(empty);
  auto none = run_gpt({"--size", "tiny", "--sample-from", empty.string()});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.errors, ContainsSubstring("there is no complete snapshot in the folder"));
}

TEST_CASE("the gpt example trains on token ids, and writes more of them", "[gpt_weights]") {
  temp_folder folder;
  auto data = (folder.path() / "train.bin").string(), snapshots = (folder.path() / "snapshots").string();
  {
    std::ofstream file(data, std::ios::binary);
    // Most of them with the sign bit of 16 bits.
    for (int i = 0; i < 2'000; ++i) {
      auto id = 30'000 + i * 37 % 5'000;
      file.put(static_cast<char>(id & 0xff)).put(static_cast<char>(id >> 8));
    }
  }
  const std::vector<std::string> tokens{"--data", data, "--tokens", "u16", "--vocabulary", "35000"};
  auto with = [](std::vector<std::string> options, const std::vector<std::string>& more) {
    options.insert(options.end(), more.begin(), more.end());
    return options;
  };
  auto ran = run_gpt(with(tiny_with(tokens), {"--snapshot-dir", snapshots}));
  INFO(ran.errors);
  REQUIRE(ran.exit_code == 0);
  auto more = run_gpt({"--size", "tiny", "--vocabulary", "35000", "--sample-from", snapshots, "--length", "3",
                       "--prompt-tokens", "34999 32768"});
  INFO(more.errors);
  CHECK(more.exit_code == 0);
  CHECK(more.output.starts_with("34999 32768 "));

  auto refused = [&](const std::vector<std::string>& options, const std::string& text) {
    auto result = run_gpt(tiny_with(options));
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.errors, ContainsSubstring(text));
  };
  refused({"--data", data, "--tokens", "u16"}, "expected ids from 0 to 255, the model's vocabulary");
  refused({"--data", data, "--tokens", "i8"}, "--tokens i8: expected bytes, u16 or u32");
  refused({"--vocabulary", "35000"}, "trains on bytes, unless --tokens says otherwise");
  refused({"--vocabulary", "-1"}, "--vocabulary must lie between 1 and");
  refused({"--tokens", "u16", "--sample-from", snapshots},
          "leave --weights, --write-profile and --memory out");
}
