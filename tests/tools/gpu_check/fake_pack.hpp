#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/processes/run_process.hpp"
#include "support/temp_folder.hpp"

namespace troupe::testing {

/// A folder such as `gpu_check --pack` makes, and a machine for it, whose programs are shell scripts: the
/// tests of Catch2, `troupe`, `nvidia-smi` and `compute-sanitizer`. As it is made, there is a GPU and
/// everything passes.
class fake_pack {
 public:
  fake_pack();

  /// Each replaces one program of the pack or of the machine by a script that says `body`, with write_cases,
  /// passed, failed and skipped of fake_pack.cpp at hand.
  void set_program(const std::string& name, const std::string& body);
  void set_machine(const std::string& name, const std::string& body);
  void remove_program(const std::string& name);
  void remove_library(const std::string& file_name);

  /// How to start `gpu_check ARGUMENTS` there, with the libraries that there are.
  run_options command(const std::vector<std::string>& arguments = {}) const;
  process_result run(const std::vector<std::string>& arguments = {});

  /// gpu_check.json as the last run left it; fails the test unless it is one whole object.
  nlohmann::json report() const;
  /// One part or step of it.
  nlohmann::json part(const std::string& name) const;
  nlohmann::json step(const std::string& part, const std::string& name) const;
  /// gpu_check.txt.
  std::string text() const;

 private:
  void write_script(const std::filesystem::path& file, const std::string& body);

  temp_folder folder_;
};

}  // namespace troupe::testing
