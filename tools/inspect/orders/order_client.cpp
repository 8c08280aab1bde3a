#include "inspect/orders/order_client.hpp"

#include "inspect/job_snapshot.hpp"
#include "inspect/snapshot_source.hpp"

namespace troupe {

using json = nlohmann::ordered_json;

order_answer order_client::send(const job_order& order) {
  try {
    auto answer = client_.post("/api/v1/control/" + order.action, order.body.dump(),
                               {{"Authorization", "Bearer " + at_.token},
                                {"Content-Type", "application/json"},
                                {"User-Agent", "troupe inspect"},
                                {"X-Troupe-Request", "1"}});
    return order_answer_from(order, answer.status, answer.body);
  } catch (const http_failure& problem) {
    return {order, {}, problem.what(), 0};
  }
}

json order_client::orders() {
  auto answer = client_.get("/api/v1/orders", {{"Authorization", "Bearer " + at_.token}});
  if (answer.status == 404)
    throw inspector_refusal(
        "the inspector has no /api/v1/orders, so that nobody could tell what came of an order: use the "
        "`troupe` that its job was built with");
  if (answer.status != 200) throw refused_answer("orders", answer);
  auto told = json::parse(answer.body, nullptr, false);
  if (auto rows = told.is_object() ? told.find("orders") : told.end(); told.is_object() && rows != told.end())
    return *rows;
  throw inspector_refusal("expected JSON of a Troupe inspector as orders, got '" + answer.body.substr(0, 60) +
                          "'");
}

}  // namespace troupe
