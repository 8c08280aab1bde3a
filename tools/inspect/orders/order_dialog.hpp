#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspect/job_snapshot.hpp"
#include "inspect/keys.hpp"
#include "inspect/orders/job_order.hpp"
#include "inspect/screen/screen.hpp"
#include "inspect/view_state.hpp"

namespace troupe {

/// The orders that a terminal's user gives: a question before each, and then what the inspector answers and
/// what came of it, until the next key. Several orders may be open at a time. A value: functions below change
/// it by keys, answers and snapshots.
struct order_dialog {
  struct followed {
    job_order order;
    std::string id;
    /// Unix time since which snapshots have no row of the order; 0: they have one.
    std::int64_t unknown_since_ms = 0;
  };
  struct line {
    std::string id;  ///< of the order that it is about; empty: it has none
    screen_row row;
  };
  std::optional<job_order> asked;  ///< is sent if the next key says yes
  bool asks_level = false;         ///< the next key chooses a level of the log
  std::vector<followed> open;      ///< taken, and without an outcome
  std::vector<line> lines;         ///< told until the next key
};

/// Whether the key gives an order: p n m w L K R.
bool is_order_key(const key& pressed);

struct order_press {
  bool is_used = false;                ///< the key is for no view
  std::optional<job_order> send = {};  ///< order that the inspector is to get; none: nothing
};
/// `actor`: id of the one that is selected; empty: none, or another view is shown.
order_press press_key(order_dialog& dialog, const key& pressed, const job_snapshot& job,
                      const std::string& actor);
/// The inspector has answered, or nobody has.
void note_answer(order_dialog& dialog, const order_answer& answer);
/// A snapshot tells outcomes. While a question is asked they are left for later.
void note_outcomes(order_dialog& dialog, const job_snapshot& job);

/// The question, or what is told of orders; empty: nothing.
screen lines_of(const order_dialog& dialog);
/// Which keys give orders, in 80 columns; empty: the job takes none.
screen order_keys_line(const job_snapshot& job, const view_state& shown);

}  // namespace troupe
