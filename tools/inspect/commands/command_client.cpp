#include "inspect/commands/command_client.hpp"

#include "inspect/job_snapshot.hpp"
#include "inspect/snapshot_source.hpp"

namespace troupe {

using json = nlohmann::ordered_json;

command_answer command_client::send(const job_command& command) {
  try {
    auto answer = client_.post("/api/v1/control/" + command.action, command.body.dump(),
                               {{"Authorization", "Bearer " + address_.token},
                                {"Content-Type", "application/json"},
                                {"User-Agent", "troupe inspect"},
                                {"X-Troupe-Request", "1"}});
    return command_answer_from(command, answer.status, answer.body);
  } catch (const http::http_failure& problem) {
    return {command, {}, problem.what(), 0};
  }
}

json command_client::commands() {
  auto answer = client_.get("/api/v1/commands", {{"Authorization", "Bearer " + address_.token}});
  if (answer.status == 404)
    throw inspector_refusal(
        "the inspector has no /api/v1/commands, so that nobody could tell what came of a command: use the "
        "`troupe` that its job was built with");
  if (answer.status != 200) throw refused_answer("commands", answer);
  auto told = json::parse(answer.body, nullptr, false);
  if (auto rows = told.is_object() ? told.find("commands") : told.end();
      told.is_object() && rows != told.end())
    return *rows;
  throw inspector_refusal("expected JSON of a Troupe inspector as commands, got '" +
                          answer.body.substr(0, 60) + "'");
}

}  // namespace troupe
