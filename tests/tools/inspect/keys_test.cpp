#include "inspect/keys.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

namespace {

std::vector<key> keys_in(std::string bytes, bool is_all = true) { return take_keys(bytes, is_all); }

bool press(view_state& shown, const std::string& bytes, std::size_t num_rows = 5) {
  for (const auto& one : keys_in(bytes))
    if (!apply_key(shown, one, num_rows)) return false;
  return true;
}

}  // namespace

TEST_CASE("keys are read as terminals send them, also in pieces") {
  CHECK(keys_in("a\x1b[A\r\t\x7f\x1bOB\x1b[5~") == std::vector<key>{{key_kind::text, 'a'},
                                                                    {key_kind::up},
                                                                    {key_kind::enter},
                                                                    {key_kind::tab},
                                                                    {key_kind::erase},
                                                                    {key_kind::down},
                                                                    {key_kind::page_up}});
  std::string bytes = "\x1b[";
  CHECK(take_keys(bytes, false).empty());
  bytes += "B";
  CHECK(take_keys(bytes, false) == std::vector<key>{{key_kind::down}});
  CHECK(bytes.empty());
  CHECK(keys_in("\x1b") == std::vector<key>{{key_kind::escape}});
  CHECK(keys_in("\x1b[1;5Cx") == std::vector<key>{{key_kind::text, 'x'}});  // control and right: not known
  CHECK(keys_in("\xc3\xa4\x01").empty());
}

TEST_CASE("keys move through a list and do not leave it") {
  view_state shown;
  CHECK(press(shown, "\x1b[A"));
  CHECK(shown.selected == 0);
  CHECK(press(shown, "\x1b[B\x1b[B"));
  CHECK(shown.selected == 2);
  CHECK(press(shown, "\x1b[6~"));
  CHECK(shown.selected == 4);
  CHECK(press(shown, "\x1b[5~"));
  CHECK(shown.selected == 0);
  CHECK(press(shown, "\x1b[F"));
  CHECK(shown.selected == 4);
  CHECK(press(shown, "\x1b[B", 2));  // the list has become shorter
  CHECK(shown.selected == 1);
  CHECK(press(shown, "\x1b[B\r", 0));
  CHECK(shown.selected == 0);
  CHECK_FALSE(shown.is_open);
}

TEST_CASE("keys choose views, open rows, sort and quit") {
  view_state shown;
  CHECK(press(shown, "s"));
  CHECK(shown.order == actor_order::state);
  CHECK(press(shown, "sss"));
  CHECK(shown.order == actor_order::tree);
  CHECK(press(shown, "3"));
  CHECK(shown.view == inspect_view::rates);
  CHECK(press(shown, "\t\t"));
  CHECK(shown.view == inspect_view::log);
  CHECK(press(shown, "\t69"));
  CHECK(shown.view == inspect_view::actors);
  CHECK(press(shown, "\r"));
  CHECK(shown.is_open);
  CHECK(press(shown, "\x1b"));
  CHECK_FALSE(shown.is_open);
  CHECK_FALSE(press(shown, "q"));
}

TEST_CASE("a filter takes letters until enter, and escape forgets it") {
  view_state shown;
  CHECK(press(shown, "/quX\x7f"));
  CHECK(shown.filter == "qu");
  CHECK(shown.is_filtering);
  CHECK(press(shown, "\r"));
  CHECK_FALSE(shown.is_filtering);
  CHECK(shown.filter == "qu");
  CHECK(press(shown, "/\x1b"));
  CHECK(shown.filter.empty());
}
