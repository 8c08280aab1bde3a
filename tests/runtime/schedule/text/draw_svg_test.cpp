#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "runtime/schedule/text/drawn_timeline.hpp"
#include "troupe/schedule/simulation/measured.hpp"
#include "troupe/schedule/text/draw.hpp"

using Catch::Matchers::ContainsSubstring;

using troupe::testing::timeline_of;

namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// Does every tag that opens close, in the right order?
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (auto begin = xml.find('<'); begin != std::string::npos; begin = xml.find('<', begin + 1)) {
    auto end = xml.find('>', begin);
    if (end == std::string::npos) return false;
    auto tag = xml.substr(begin + 1, end - begin - 1);
    if (tag.back() == '/') continue;
    auto name = tag.substr(tag.front() == '/' ? 1 : 0, tag.find(' '));
    if (tag.front() != '/') {
      open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name) return false;
    open.pop_back();
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a picture is well-formed and has title, devices, boxes, legend and idle shares") {
  auto svg = troupe::schedule::draw_svg(timeline_of(4, 8, 4), "Four stages");
  CHECK(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=", 0) == 0);
  CHECK(is_well_formed(svg));
  CHECK_THAT(svg, ContainsSubstring(">Four stages<") && ContainsSubstring(">makespan 33, bubble 27.3 %<"));
  CHECK_THAT(svg, ContainsSubstring(">device 0<") && ContainsSubstring(">device 3<"));
  CHECK(count(svg, "<g><title>") == 4 * 16);
  CHECK_THAT(svg, ContainsSubstring("<title>0F0: 0 to 1</title>") &&
                      ContainsSubstring("<title>0B7: 31 to 33</title>"));
  CHECK_THAT(
      svg, ContainsSubstring(">forward<") && ContainsSubstring(">backward<") && ContainsSubstring(">idle<"));
  CHECK_THAT(svg, !ContainsSubstring(">input gradient<"));
  CHECK(count(svg, ">27.3 % idle<") == 4);
}

TEST_CASE("boxes are placed by their times") {
  auto ran = troupe::schedule::measured_timeline(
      {{{{0, troupe::action_kind::forward, 0}, 0, 1}}, {{{1, troupe::action_kind::forward, 0}, 1, 4}}});
  auto svg = troupe::schedule::draw_svg(ran, "", "ms");
  CHECK_THAT(svg, ContainsSubstring("<rect x=\"104.00\" y=\"84.00\" width=\"245.00\""));
  CHECK_THAT(svg, ContainsSubstring("<rect x=\"349.00\" y=\"132.00\" width=\"735.00\""));
  CHECK_THAT(svg, ContainsSubstring(">makespan 4 ms, bubble 50.0 %<") && ContainsSubstring(">time in ms<"));
}

TEST_CASE("input and weight gradients have their own colours and legend entries") {
  using enum troupe::action_kind;
  auto svg = troupe::schedule::draw_svg(
      troupe::schedule::measured_timeline(
          {{{{0, forward, 0}, 0, 1}, {{0, input_gradient, 0}, 1, 2}, {{0, weight_gradient, 0}, 2, 3}}}),
      "split");
  CHECK_THAT(svg, ContainsSubstring(">input gradient<") && ContainsSubstring(">weight gradient<"));
  CHECK_THAT(svg, ContainsSubstring("class=\"i\"") && ContainsSubstring("class=\"w\""));
}

TEST_CASE("what takes no time has no box, and the optimizer's step one of its own colour if it takes time") {
  auto svg = troupe::schedule::draw_svg(timeline_of(2, 3, 2), "");
  CHECK(count(svg, "<g><title>") == 2 * 6);
  CHECK_THAT(svg, !ContainsSubstring(">optimizer step<") && !ContainsSubstring("A: "));
  svg = troupe::schedule::draw_svg(timeline_of(2, 3, 2, {.apply = 2}), "");
  CHECK(is_well_formed(svg));
  CHECK(count(svg, "<g><title>") == 2 * 7);
  CHECK_THAT(svg, ContainsSubstring(">optimizer step<") && ContainsSubstring("<title>1A: 10 to 12</title>") &&
                      ContainsSubstring("class=\"a\"") && ContainsSubstring("class=\"a text box\">A<"));
  svg = troupe::schedule::draw_svg(timeline_of(2, 3, 2, {.forward = 0}), "");
  CHECK(count(svg, "<g><title>") == 2 * 3);
}

TEST_CASE("where a device has several stages, boxes hold whole actions") {
  CHECK_THAT(troupe::schedule::draw_svg(timeline_of(2, 2, 1), ""), ContainsSubstring(">1B0</text>"));
  CHECK_THAT(troupe::schedule::draw_svg(timeline_of(2, 2, 2), ""), !ContainsSubstring(">1B0</text>"));
}

TEST_CASE("boxes too narrow for a number have no number") {
  auto svg = troupe::schedule::draw_svg(timeline_of(2, 500, 2), "");
  CHECK(count(svg, "<g><title>") == 2000);
  CHECK(count(svg, "text box") + count(svg, "text small") == 0);
}

TEST_CASE("a title is escaped") {
  auto svg = troupe::schedule::draw_svg(timeline_of(1, 1, 1), "a < b & \"c\" > d");
  CHECK(is_well_formed(svg));
  CHECK_THAT(svg, ContainsSubstring("a &lt; b &amp; \"c\" &gt; d"));
}

TEST_CASE("a timeline of zero length makes a picture with valid widths of boxes") {
  auto svg = troupe::schedule::draw_svg(
      timeline_of(2, 2, 2, {.forward = 0, .input_gradient = 0, .weight_gradient = 0}), "");
  CHECK(is_well_formed(svg));
  CHECK_THAT(svg, !ContainsSubstring("nan") && !ContainsSubstring("inf"));
}

TEST_CASE("a device's note stands under its idle time") {
  auto ran = timeline_of(2, 2, 2);
  auto svg = troupe::schedule::draw_svg(ran, "", "", {"keeps 2 MiB", "keeps <1 MiB"});
  CHECK_THAT(svg, ContainsSubstring(">keeps 2 MiB</text>") && ContainsSubstring(">keeps &lt;1 MiB</text>"));
  CHECK_THAT(troupe::schedule::draw_svg(ran, ""), !ContainsSubstring("keeps"));
}
