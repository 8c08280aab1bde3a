#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "troupe/config/job_options.hpp"

namespace troupe {

/// A command-line option of the program, for example "--model". `value` points to the variable that receives
/// its value; the variable's initial content is the default. Numbers are decimal, and text that is not one as
/// a whole ("2.5" for an int, "0x10", "12 layers") is refused with the option's name.
struct program_option {
  std::string name;
  std::string description;
  std::variant<std::string*, int*, double*> value;
};

/// The job options that a program uses, by the names of their fields. `--help` lists these, and run_program
/// refuses the others: nothing that a user asks for is ignored in silence.
class used_options {
 public:
  /// Every option: of a program with a Trainer, its Pipeline(model, options), the data in options.data, and
  /// progress (options.json).
  static used_options all();
  /// Of a program with a Trainer and Pipeline(model, options), whose data and output are its own: all but
  /// `data` and `json`.
  static used_options of_trainer();
  /// What a World uses by itself: of a program with a loop of its own over groups. Not `devices`, which
  /// World::local_groups and World::num_devices use.
  static used_options of_world();
  /// Only these. Throws std::invalid_argument for a name that is no field of job_options.
  static used_options only(const std::vector<std::string>& names);

  /// Throw std::invalid_argument for a name that is no field of job_options.
  used_options plus(const std::vector<std::string>& names) const;
  used_options without(const std::vector<std::string>& names) const;
  bool contains(std::string_view name) const { return names_.contains(name); }

  /// Throws bad_input, naming the option, if the command line or a YAML file set another one. `user` says who
  /// does not use it: "--load, which only predicts,".
  void refuse_others(const job_options& options, const std::string& user = "this program") const;

 private:
  std::set<std::string, std::less<>> names_;
};

/// Runs a training program: parses the command line, calls `body` with the options, and returns the exit
/// code. The command line has the fields of job_options that are `used`, `own_options`, `--help`, and
/// `--config FILE`, which may also set the program's own options. An exception becomes a message on standard
/// error and an exit code: 2 for bad_input (a restart would not help), 128 + signal for job_stopped, 1
/// otherwise.
int run_program(int argc, char** argv, job_options options,
                const std::function<void(const job_options&)>& body,
                const std::vector<program_option>& own_options = {},
                const used_options& used = used_options::all());

}  // namespace troupe
