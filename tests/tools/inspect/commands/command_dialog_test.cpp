// Keys that give commands: what is asked before, what is sent, and what is told of it.
#include "inspect/commands/command_dialog.hpp"

#include <catch2/catch_test_macros.hpp>

#include "inspect/screen/draw.hpp"
#include "tools/inspect/told_job.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

job_snapshot commanded_job(bool is_paused = false) {
  auto told = told_job();
  told.parts["job"]["control"] = true;
  told.parts["job"]["is_paused"] = is_paused;
  told.parts["commands"] = {{"commands", nlohmann::ordered_json::array()}};
  return told;
}

key letter(char one) { return {key_kind::text, one}; }

/// What is shown after these keys, one line each; `sent`: the commands that they send.
struct typed {
  explicit typed(job_snapshot told = commanded_job(), std::string selected = "1#1/device/1")
      : job(std::move(told)), actor(std::move(selected)) {}
  std::string press(const key& one) {
    auto press = press_key(dialog, one, job, actor);
    is_used = press.is_used;
    if (press.send) sent.push_back(*press.send);
    return shown();
  }
  std::string press(char one) { return press(letter(one)); }
  std::string shown() const {
    std::string text;
    for (const auto& row : lines_of(dialog)) text += (text.empty() ? "" : "\n") + row.text;
    return text;
  }
  void taken(const std::string& id) { note_answer(dialog, {sent.back(), id, {}, 202}); }
  /// The next snapshot tells this.
  void outcome(const std::string& id, const std::string& what, const std::string& text) {
    job.parts["commands"]["commands"].push_back({{"id", id}, {"outcome", what}, {"text", text}});
    note_outcomes(dialog, job);
  }

  job_snapshot job;
  std::string actor;
  command_dialog dialog;
  std::vector<job_command> sent;
  bool is_used = false;
};

std::string body_of(char one, job_snapshot told = commanded_job(), std::string selected = "1#1/device/1") {
  typed keys(std::move(told), std::move(selected));
  keys.press(one);
  keys.press('y');
  REQUIRE(keys.sent.size() == 1);
  return keys.sent[0].action + " " + keys.sent[0].body.dump();
}

}  // namespace

TEST_CASE("each key for commands sends its command after a yes") {
  CHECK(body_of('p') == "pause {}");
  CHECK(body_of('p', commanded_job(true)) == "resume {}");
  CHECK(body_of('n') == R"(step {"unit":"step","count":1})");
  CHECK(body_of('m') == R"(step {"unit":"microbatch","count":1})");
  CHECK(body_of('w') == "snapshot {}");
  CHECK(body_of('K') == R"(kill {"actor":"1#1/device/1"})");
  CHECK(body_of('R') == R"(restart {"actor":"1#1/device/1"})");
}

TEST_CASE("a supervisor is killed and restarted with its process") {
  CHECK(body_of('K', commanded_job(), "1#1/supervisor") == R"(kill {"rank":1})");
  CHECK(body_of('R', commanded_job(), "0#0/supervisor") == R"(restart {"rank":0})");
}

TEST_CASE("a command is asked for in words, and sent by y or enter alone") {
  typed keys;
  CHECK(keys.press('K') == "kill 1#1/device/1, as if it had failed? y: yes, any other key: no");
  CHECK(keys.is_used);
  CHECK(keys.press({key_kind::enter}) == "kill 1#1/device/1: sent, and not answered yet");
  CHECK(keys.sent.size() == 1);
  for (const auto& other :
       {letter('n'), letter('q'), letter('K'), key{key_kind::escape}, key{key_kind::down}}) {
    keys.press('K');
    CHECK(keys.press(other) == "kill 1#1/device/1: not sent");
    CHECK(keys.is_used);
  }
  CHECK(keys.sent.size() == 1);
  CHECK(keys.press({key_kind::down}).empty());
  CHECK_FALSE(keys.is_used);
  CHECK_FALSE(is_command_key(letter('k')));
}

TEST_CASE("a level of the log is chosen by its letter") {
  typed keys;
  CHECK(keys.press('L') == "log level? t trace  d debug  i info  w warn  e error, any other key: no");
  CHECK(keys.press('w') == "log level warn: sent, and not answered yet");
  CHECK(keys.sent[0].body.dump() == R"({"level":"warn"})");
  keys.press('L');
  CHECK(keys.press('q') == "log level: not sent");
  CHECK(keys.sent.size() == 1);
}

TEST_CASE("a command that cannot be given is not asked for") {
  auto shown_after = [](char one, job_snapshot told, std::string selected = "1#1/device/1") {
    typed keys(std::move(told), std::move(selected));
    auto shown = keys.press(one);
    CHECK(keys.press('y').empty());
    CHECK(keys.sent.empty());
    return shown;
  };
  CHECK(shown_after('p', job_snapshot()) == "nothing is known of the job yet: it gets no commands");
  CHECK(shown_after('p', told_job()) ==
        "this job takes no commands: start it with --inspect-control beside --inspect");
  CHECK(shown_after('K', commanded_job(), "") ==
        "K and R are for the actor that is selected: press 1, and choose one");
  CHECK(shown_after('R', commanded_job(), "1#0/supervisor") ==
        "restart 1#0/supervisor: it was lost with its process: choose the actor that runs in its place");
  CHECK(shown_after('K', commanded_job(), "9#0/stage/0") ==
        "kill 9#0/stage/0: it is no longer among the actors");
}

TEST_CASE("the answer and the outcome of a command are told until the next key") {
  typed keys;
  keys.press('p');
  keys.press('y');
  keys.taken("0-1");
  CHECK(keys.shown() == "pause: taken as 0-1, and not carried out yet");
  note_outcomes(keys.dialog, keys.job);
  CHECK(keys.shown() == "pause: taken as 0-1, and not carried out yet");
  keys.outcome("0-1", "done", "the job is paused, and all devices stand");
  CHECK(keys.shown() == "pause: done: the job is paused, and all devices stand");
  CHECK(lines_of(keys.dialog)[0].style == row_style::plain);
  note_outcomes(keys.dialog, keys.job);
  CHECK(keys.press({key_kind::down}).empty());
  note_outcomes(keys.dialog, keys.job);
  CHECK(keys.shown().empty());
}

TEST_CASE("an outcome that comes after other keys, or during a question, is told all the same") {
  typed keys;
  keys.press('p');
  keys.press('y');
  keys.taken("0-1");
  keys.press({key_kind::down});
  CHECK(keys.shown().empty());
  auto question = keys.press('w');
  keys.outcome("0-1", "timed_out", "devices have not come to where they stop");
  CHECK(keys.shown() == question);
  CHECK(keys.press({key_kind::escape}) == "snapshot: not sent");
  note_outcomes(keys.dialog, keys.job);
  CHECK(keys.shown() == "snapshot: not sent\npause: timed_out: devices have not come to where they stop");
  CHECK(lines_of(keys.dialog)[1].style == row_style::bad);
}

TEST_CASE("a command that was not taken, and one that nobody has answered, are told with the reason") {
  typed keys;
  keys.press('w');
  keys.press('y');
  note_answer(keys.dialog, {keys.sent[0], {}, "no folder", 409});
  CHECK(keys.shown() == "snapshot: refused: no folder");
  keys.press('w');
  keys.press('y');
  note_answer(keys.dialog, {keys.sent[1], {}, "127.0.0.1:1: no answer within 5000 ms", 0});
  CHECK(keys.shown() ==
        "snapshot: 127.0.0.1:1: no answer within 5000 ms. It was taken or not: look at the job");
  CHECK(keys.dialog.open.empty());
}

TEST_CASE("a command that no inspector knows any more is told as lost, once that is sure") {
  typed keys;
  keys.press('p');
  keys.press('y');
  keys.taken("0-1");
  note_outcomes(keys.dialog, keys.job);
  keys.job.at_ms += most_unknown_ms - 1;
  note_outcomes(keys.dialog, keys.job);
  CHECK(keys.shown() == "pause: taken as 0-1, and not carried out yet");
  SECTION("it is known again") {
    keys.outcome("0-1", "done", "the job goes on");
    CHECK(keys.shown() == "pause: done: the job goes on");
  }
  SECTION("it is not") {
    keys.job.at_ms += 1;
    note_outcomes(keys.dialog, keys.job);
    CHECK(keys.shown() == std::string("pause: lost: ") + unknown_command_text);
    CHECK(keys.dialog.open.empty());
  }
}

TEST_CASE("the keys for commands are shown where the job takes some, in 80 columns") {
  CHECK(command_keys_line(told_job(), {}).empty());
  CHECK(command_keys_line(job_snapshot(), {}).empty());
  for (bool is_paused : {false, true}) {
    auto line = command_keys_line(commanded_job(is_paused), {});
    REQUIRE(line.size() == 1);
    CHECK(line[0].text.size() <= 80);
    CHECK(line[0].text.starts_with(is_paused ? "p: resume" : "p: pause"));
    CHECK(line[0].text.ends_with("K: kill  R: restart"));
  }
  view_state rates;
  rates.view = inspect_view::rates;
  CHECK(command_keys_line(commanded_job(), rates)[0].text ==
        "p: pause  n: step  m: microbatch  w: snapshot  L: log");
  rates.is_filtering = true;
  CHECK(command_keys_line(commanded_job(), rates).empty());
}

TEST_CASE("the actor that is selected is found in lists that are sorted and filtered") {
  view_state shown;
  shown.order = actor_order::restarts;
  CHECK(selected_actor(draw_list(told_job(), shown, 80), shown) == "0#0/device/0");
  shown = {};
  shown.filter = "device";
  shown.selected = 1;
  CHECK(selected_actor(draw_list(told_job(), shown, 80), shown) == "1#1/device/1");
  shown.selected = 9;  // the list has become shorter
  CHECK(selected_actor(draw_list(told_job(), shown, 80), shown) == "1#1/device/1");
  shown.filter = "nothing";
  CHECK(selected_actor(draw_list(told_job(), shown, 80), shown).empty());
  shown = {};
  shown.view = inspect_view::rates;
  CHECK(selected_actor(draw_list(told_job(), shown, 80), shown).empty());
}
