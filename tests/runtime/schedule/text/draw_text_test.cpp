#include <catch2/catch_test_macros.hpp>
#include <sstream>

#include "runtime/schedule/text/drawn_timeline.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/schedule/simulation/measured.hpp"
#include "troupe/schedule/text/draw.hpp"

using troupe::testing::timeline_of;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Characters of UTF-8 text, less ANSI colours.
int width_of(const std::string& line) {
  int width = 0;
  bool in_color = false;
  for (unsigned char byte : line) {
    if (byte == '\033') in_color = true;
    if (!in_color && (byte & 0xc0) != 0x80) ++width;
    if (byte == 'm') in_color = false;
  }
  return width;
}

}  // namespace

TEST_CASE("a drawing shows forwards, backwards and idle time to scale, numbers where they fit") {
  CHECK(troupe::schedule::draw_text(timeline_of(2, 2, 2), {.columns = 9 + 36, .legend = false}) ==
        "device 0 0░░░1░░░········0███████····1███████\n"
        "device 1 ····0░░░0███████1░░░1███████········\n"
        "         0                                  9\n");
}

TEST_CASE("every device line is as wide as asked for") {
  for (bool color : {false, true}) {
    for (int columns : {32, 33, 80, 100, 237}) {
      auto ran = timeline_of(12, 24, 12);
      auto lines = lines_of(troupe::schedule::draw_text(ran, {.columns = columns, .color = color}));
      REQUIRE(lines.size() == 12 + 2);
      for (std::size_t i = 0; i < 12 + 1; ++i) CHECK(width_of(lines[i]) == columns);
    }
  }
}

TEST_CASE("only a coloured drawing holds escape characters") {
  auto ran = timeline_of(2, 2, 2);
  CHECK(troupe::schedule::draw_text(ran, {.color = false}).find('\033') == std::string::npos);
  CHECK(troupe::schedule::draw_text(ran, {.color = true}).find('\033') != std::string::npos);
}

TEST_CASE("the legend explains the kinds that occur, also without colours") {
  using enum troupe::action_kind;
  auto whole = timeline_of(2, 2, 2);
  CHECK(lines_of(troupe::schedule::draw_text(whole, {})).back() ==
        "         ░░ forward   ██ backward   ·· idle");
  auto split = troupe::schedule::measured_timeline(
      {{{{0, forward, 0}, 0, 1}, {{0, input_gradient, 0}, 1, 2}, {{0, weight_gradient, 0}, 2, 3}}});
  CHECK(lines_of(troupe::schedule::draw_text(split, {})).back() ==
        "         ░░ forward   ▓▓ input gradient   ▒▒ weight gradient   ·· idle");
  CHECK(lines_of(troupe::schedule::draw_text(whole, {.legend = false})).size() == 3);
}

TEST_CASE("an optimizer's step is drawn and explained if it takes time") {
  auto ran = timeline_of(2, 1, 2, {.apply = 2});
  CHECK(troupe::schedule::draw_text(ran, {.columns = 9 + 32}) ==
        "device 0 0░░░············0███████A▄▄▄▄▄▄▄\n"
        "device 1 ····0░░░0███████A▄▄▄▄▄▄▄········\n"
        "         0                              8\n"
        "         ░░ forward   ██ backward   ▄▄ optimizer step   ·· idle\n");
  ran = timeline_of(2, 1, 1, {.apply = 2});
  CHECK(lines_of(troupe::schedule::draw_text(ran, {.columns = 9 + 40}))[0] ==
        "device 0 0F0░1F0░1B0█████0B0█████0A▄▄▄▄▄▄1A▄▄▄▄▄▄");
  CHECK(troupe::schedule::draw_text(timeline_of(2, 1, 2), {}).find("optimizer") == std::string::npos);
}

TEST_CASE("a box too narrow for number and fill has fill only") {
  auto drawing = troupe::schedule::draw_text(timeline_of(1, 12, 1), {.columns = 9 + 36, .legend = false});
  CHECK(lines_of(drawing)[0] == "device 0 ░0█░1█░2█░3█░4█░5█░6█░7█░8█░9█░██░██");
}

TEST_CASE("where a device has several stages, boxes hold whole actions if all of that length can") {
  auto drawing = troupe::schedule::draw_text(timeline_of(2, 1, 1), {.columns = 9 + 48, .legend = false});
  CHECK(lines_of(drawing)[0] == "device 0 0F0░░░░░1F0░░░░░1B0█████████████0B0█████████████");
  drawing = troupe::schedule::draw_text(timeline_of(2, 1, 1), {.columns = 9 + 24, .legend = false});
  CHECK(lines_of(drawing)[0] == "device 0 0F0░1F0░1B0█████0B0█████");
}

TEST_CASE("a measured timeline is drawn by the same function, with its unit") {
  auto ran = troupe::schedule::measured_timeline(
      {{{{0, troupe::action_kind::forward, 0}, 7, 7.5}}, {{{1, troupe::action_kind::forward, 0}, 7.5, 8}}});
  CHECK(troupe::schedule::draw_text(ran, {.columns = 32, .legend = false, .unit = "s"}) ==
        "device 0 0░░░░░░░░░░░···········\n"
        "device 1 ············0░░░░░░░░░░\n"
        "         0                   1 s\n");
}

TEST_CASE("a timeline of zero length is all idle") {
  auto ran = timeline_of(1, 1, 1, {.forward = 0, .input_gradient = 0, .weight_gradient = 0});
  CHECK(troupe::schedule::draw_text(ran, {.columns = 32, .legend = false}) ==
        "device 0 ·······················\n"
        "         0                     0\n");
}

TEST_CASE("a drawing too narrow or absurdly wide is refused") {
  auto ran = timeline_of(2, 2, 2);
  for (int columns : {-1, 0, 31, 4097})
    CHECK_THROWS_AS(troupe::schedule::draw_text(ran, {.columns = columns}), troupe::bad_input);
}
