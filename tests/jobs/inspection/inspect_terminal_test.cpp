// `troupe inspect` on a terminal, which tmux plays: a job that runs, a process that is killed, a job that
// ends.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "jobs/inspection/paced_job.hpp"
#include "support/temp_folder.hpp"
#include "support/text_of.hpp"

using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A terminal in which a shell runs a line.
class terminal_of_tmux {
 public:
  terminal_of_tmux(const std::filesystem::path& folder, const std::string& line)
      : socket_((folder / "tmux").string()) {
    std::ofstream(folder / "line.sh") << line;
    tmux({"new-session", "-d", "-x", "80", "-y", "24", "sh " + (folder / "line.sh").string()});
  }
  terminal_of_tmux(const terminal_of_tmux&) = delete;
  terminal_of_tmux& operator=(const terminal_of_tmux&) = delete;
  ~terminal_of_tmux() { tmux({"kill-server"}); }

  std::string tmux(std::vector<std::string> words) const {
    std::vector<std::string> command = {"tmux", "-S", socket_, "-f", "/dev/null"};
    command.insert(command.end(), words.begin(), words.end());
    return run_process({.command = command, .environment = {{"LC_ALL", "C"}}, .without = {"TMUX"}}).output;
  }
  void press(const std::string& key) const { tmux({"send-keys", key}); }
  std::string screen() const { return tmux({"capture-pane", "-p"}); }
  /// The screen when it has this text.
  std::string wait_for(const std::string& text) const {
    auto begun = std::chrono::steady_clock::now();
    while (true) {
      auto shown = screen();
      if (shown.find(text) != std::string::npos) return shown;
      INFO(text << "\n" << shown);
      REQUIRE(std::chrono::steady_clock::now() - begun < 60s);
      std::this_thread::sleep_for(50ms);
    }
  }

 private:
  std::string socket_;
};

bool has_tmux() { return run_in_shell("command -v tmux").exit_code == 0; }

}  // namespace

TEST_CASE("a terminal shows a running job, a process that is killed and its restart, and the end of the job",
          "[terminal]") {
  if (!has_tmux()) SKIP("tmux is not installed: it is in Debian's package tmux");
  temp_folder folder;
  paced_job paced(2, many_steps);
  auto& job = paced.inspected();
  auto record = (folder.path() / "record.jsonl").string();
  auto command = std::string(TROUPE_PROGRAM) + " inspect ";
  terminal_of_tmux terminal(folder.path(), "stty -a >" + (folder.path() / "before").string() + "; " +
                                               command + "'" + job.url() + "' --record " + record +
                                               "; code=$?; stty -a >" + (folder.path() / "after").string() +
                                               "; echo ended with $code; sleep 100");
  CHECK_THAT(terminal.wait_for("1#0/device/1"),
             ContainsSubstring("[1 actors]") && ContainsSubstring("q: quit"));
  REQUIRE(::kill(job.pid_of(1), SIGKILL) == 0);
  auto restarted = terminal.wait_for("1#1/device/1");
  CHECK_THAT(restarted, ContainsSubstring("generation 2"));
  terminal.wait_for("recoveries 1");
  terminal.press("End");
  CHECK_THAT(terminal.wait_for("1#0/gatherer"), ContainsSubstring("lost"));
  terminal.press("2");
  terminal.wait_for("device 1   ");
  terminal.tmux({"resize-window", "-x", "60", "-y", "16"});
  terminal.press("3");
  terminal.wait_for("rank 1    to 0 ");
  job.process().signal(SIGTERM);
  job.process().wait();
  terminal.wait_for("Connection refused");
  CHECK_THAT(terminal.screen(), ContainsSubstring("rank 1    to 0 "));  // what was known stays
  terminal.press("q");
  terminal.wait_for("ended with 0");

  auto settings = [&](const char* name) {
    auto text = text_of(folder.path() / name);
    return text.substr(text.find(';', text.find("columns")));  // after the size, which has changed
  };
  CHECK(settings("before") == settings("after"));

  auto last = run_process({.command = {TROUPE_PROGRAM, "inspect", "--replay", record, "--once"},
                           .environment = {},
                           .without = {}});
  CHECK(last.exit_code == 0);
  CHECK_THAT(last.output, ContainsSubstring("1#1/device/1"));
  terminal.tmux({"respawn-pane", "-k", command + "--replay " + record + "; sleep 100"});
  terminal.wait_for("replay 1/");
  terminal.press("Right");
  terminal.wait_for("replay 2/");
  terminal.press("5");
  terminal.wait_for("[5 log]");
}

TEST_CASE("commands are given from a terminal, and the job trains the same bits", "[terminal]") {
  if (!has_tmux()) SKIP("tmux is not installed: it is in Debian's package tmux");
  temp_folder folder;
  paced_job paced(2, with_commands());
  auto& job = paced.inspected();
  auto record = (folder.path() / "record.jsonl").string();
  auto command = std::string(TROUPE_PROGRAM) + " inspect ";
  terminal_of_tmux terminal(folder.path(),
                            command + "'" + job.url() + "' --record " + record + "; sleep 100");
  terminal.wait_for("p: pause  n: step");
  terminal.press("p");
  terminal.wait_for("pause the job? y: yes, any other key: no");
  terminal.press("y");
  terminal.wait_for("pause: done: the job is paused, and all devices stand");
  terminal.press("n");
  terminal.wait_for("let the job do 1 optimizer step and pause after it?");
  terminal.press("Enter");
  terminal.wait_for("step of 1 optimizer step: done");
  terminal.press("m");
  terminal.press("y");
  terminal.wait_for("step of 1 microbatch: done");
  terminal.press("w");
  terminal.press("y");
  CHECK_THAT(terminal.wait_for("snapshot: refused: "), ContainsSubstring("--snapshot-dir"));
  terminal.press("L");
  terminal.press("i");
  terminal.wait_for("log level info: done");

  terminal.press("/");
  for (const char* letter : {"d", "e", "v", "i", "c", "e", "/", "1"}) terminal.press(letter);
  terminal.press("Enter");
  terminal.wait_for("filter: device/1");
  terminal.press("K");
  terminal.wait_for("kill 1#0/device/1, as if it had failed? y: yes, any other key: no");
  terminal.press("x");
  terminal.wait_for("kill 1#0/device/1: not sent");
  terminal.press("K");
  terminal.press("y");
  terminal.wait_for("kill 1#0/device/1: done: it was started again");
  terminal.press("/");
  terminal.press("Escape");
  terminal.press("Home");
  terminal.press("R");
  terminal.wait_for("restart the process of rank 0, which ends cleanly?");
  terminal.press("Escape");
  terminal.wait_for("restart the process of rank 0: not sent");
  terminal.press("p");
  terminal.wait_for("let the job go on?");
  terminal.press("y");
  terminal.wait_for("resume: done");
  CHECK(paced.finish() == untouched_weights(many_steps));
  terminal.wait_for("Connection refused");

  terminal.tmux({"respawn-pane", "-k", command + "--replay " + record + "; sleep 100"});
  terminal.wait_for("replay 1/");
  terminal.press("p");
  terminal.wait_for("this is a record: only a running job takes commands");
  terminal.press("Right");
  terminal.wait_for("replay 2/");
}

TEST_CASE("commands are given by scripts, which learn what came of them, and the job trains the same bits",
          "[terminal]") {
  temp_folder folder;
  paced_job paced(2, with_commands({"--inspect-audit-log", (folder.path() / "audit.jsonl").string()}));
  auto& job = paced.inspected();
  auto given = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "--command");
    return job.inspect(words);
  };
  auto paused = given({"pause"});
  INFO(paused.errors);
  CHECK(paused.output == "pause: done: the job is paused, and all devices stand\n");
  CHECK(paused.exit_code == 0);
  auto stepped = given({"step", "--unit", "microbatch", "--count", "2", "--json"});
  CHECK(stepped.exit_code == 0);
  auto told = nlohmann::json::parse(stepped.output);
  CHECK(told["action"] == "step");
  CHECK(told["outcome"] == "done");

  auto refused = given({"snapshot", "--json"});
  CHECK(refused.exit_code == 1);
  told = nlohmann::json::parse(refused.output);
  CHECK(told["outcome"] == "refused");
  CHECK(told["status"] == 409);
  CHECK(told["id"].is_null());
  auto unknown = given({"kill", "--rank", "7", "--yes"});
  CHECK(unknown.exit_code == 1);
  CHECK_THAT(unknown.output, ContainsSubstring("kill the process of rank 7: refused: ") &&
                                 ContainsSubstring("expected a rank from 0 to 1"));
  auto unasked = given({"kill", "--rank", "1"});
  CHECK(unasked.exit_code == 2);
  CHECK_THAT(unasked.errors, ContainsSubstring("expected --yes, since there is no terminal to ask on"));

  auto killed = given({"kill", "--rank", "1", "--yes"});
  CHECK(killed.exit_code == 0);
  CHECK_THAT(killed.output, ContainsSubstring("the process was replaced by"));
  CHECK(given({"log_level", "--level", "warn"}).exit_code == 0);
  CHECK(given({"resume"}).output == "resume: done: the job goes on\n");
  CHECK(paced.finish() == untouched_weights(many_steps));
  std::ostringstream audit;
  audit << std::ifstream(folder.path() / "audit.jsonl").rdbuf();
  CHECK_THAT(audit.str(), ContainsSubstring("\"user_agent\":\"troupe inspect\""));
}

TEST_CASE("a job that takes no commands says how it would take some", "[terminal]") {
  paced_job paced(2, many_steps);
  auto& job = paced.inspected();
  auto refused = job.inspect({"--command", "pause"});
  CHECK(refused.exit_code == 1);
  CHECK_THAT(refused.output, ContainsSubstring("pause: refused: this job takes no commands") &&
                                 ContainsSubstring("--inspect-control"));
  if (!has_tmux()) SKIP("tmux is not installed: it is in Debian's package tmux");
  temp_folder folder;
  terminal_of_tmux terminal(folder.path(),
                            std::string(TROUPE_PROGRAM) + " inspect '" + job.url() + "'; sleep 100");
  terminal.wait_for("1#0/device/1");
  CHECK_THAT(terminal.screen(), !ContainsSubstring("p: pause"));
  terminal.press("w");
  terminal.wait_for("this job takes no commands: start it with --inspect-control beside --inspect");
}

TEST_CASE("a signal ends troupe inspect and gives the terminal back", "[terminal]") {
  if (!has_tmux()) SKIP("tmux is not installed: it is in Debian's package tmux");
  temp_folder folder;
  auto pid_file = (folder.path() / "pid").string();
  // Nobody answers there: it says so, and tries again.
  terminal_of_tmux terminal(folder.path(),
                            "sh -c 'echo $$ >" + pid_file + "; exec " + TROUPE_PROGRAM +
                                " inspect http://127.0.0.1:1/#token=x'; echo ended with $?; sleep 100");
  terminal.wait_for("Connection refused");
  auto flags = [&] { return terminal.tmux({"display-message", "-p", "#{alternate_on}#{cursor_flag}"}); };
  CHECK(flags() == "10\n");
  int pid = 0;
  std::ifstream(pid_file) >> pid;
  REQUIRE(pid > 1);
  REQUIRE(::kill(pid, SIGTERM) == 0);
  terminal.wait_for("ended with 143");
  CHECK(flags() == "01\n");
}

TEST_CASE("troupe inspect says what is wrong with its arguments, and who does not answer", "[terminal]") {
  auto refused = [](std::vector<std::string> words) {
    words.insert(words.begin(), {TROUPE_PROGRAM, "inspect"});
    auto result = run_process({.command = words, .environment = {}, .without = {"TROUPE_INSPECT_URL"}});
    CHECK(result.exit_code == 2);
    return result.errors;
  };
  CHECK_THAT(refused({"--once"}), ContainsSubstring("TROUPE_INSPECT_URL"));
  CHECK_THAT(refused({"127.0.0.1:80", "--once"}), ContainsSubstring("--token-file"));
  CHECK_THAT(refused({"nonsense", "--once"}), ContainsSubstring("http://HOST:PORT/#token=TOKEN"));
  CHECK_THAT(refused({"--once", "--json"}), ContainsSubstring("exclude each other"));
  CHECK_THAT(refused({"--replay", "/nowhere", "--once"}), ContainsSubstring("cannot read the record"));
  temp_folder folder;
  auto loop = (folder.path() / "loop").string();
  std::filesystem::create_symlink(loop, loop);
  CHECK_THAT(refused({loop, "--once"}),
             ContainsSubstring("'" + loop + "': Too many levels of symbolic links"));
  CHECK_THAT(refused({"--replay", loop, "--once"}), ContainsSubstring("Too many levels of symbolic links"));
  CHECK_THAT(refused({"--token-file", "--once"}),
             ContainsSubstring("--token-file needs a value, got the option --once"));
  CHECK_THAT(refused({"http://127.0.0.1:1/#token=x", "--command", "step", "--count", "99999999999999999999"}),
             ContainsSubstring("--count: expected a whole number of at most"));
  CHECK_THAT(refused({"http://127.0.0.1:1/#token=x", "--diagnose"}),
             ContainsSubstring("cannot ask the inspector"));
  CHECK_THAT(refused({"http://127.0.0.1:1/#token=x"}), ContainsSubstring("expected a terminal"));
  CHECK_THAT(refused({"http://127.0.0.1:1/#token=x", "--command", "pause"}),
             ContainsSubstring("cannot ask the inspector"));
  CHECK_THAT(refused({"http://127.0.0.1:1/#token=x", "--command", "stop"}),
             ContainsSubstring("expected one of pause, resume"));
  CHECK_THAT(refused({"http://127.0.0.1:1/#token=x", "--command", "pause", "--once"}),
             ContainsSubstring("exclude each other"));
  CHECK_THAT(refused({"http://127.0.0.1:1/#token=x", "--yes"}),
             ContainsSubstring("expected --command COMMAND"));
  CHECK_THAT(refused({"--replay", "/nowhere", "--command", "pause"}), ContainsSubstring("a record is none"));
  CHECK_THAT(refused({"/tmp", "--command", "pause"}), ContainsSubstring("are for running jobs"));
}
