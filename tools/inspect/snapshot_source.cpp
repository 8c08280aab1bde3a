#include "inspect/snapshot_source.hpp"

#include "troupe/posix/unix_time.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// What a screen can show of what has no end.
std::string target_of(const std::string& part, const json& job) {
  auto target = "/api/v1/" + part;
  if (part != "metrics") return target;
  constexpr double shown_steps = 100;
  auto after = number_in(job, "step") - shown_steps;
  return target + "?limit=100&after=" + std::to_string(after > 0 ? static_cast<std::int64_t>(after) : 0);
}

}  // namespace

inspector_refusal refused_answer(const std::string& part, const http::http_answer& answer) {
  if (answer.status == 401)
    return inspector_refusal(
        "the inspector does not know this token: give the address of the job's start "
        "whole, http://HOST:PORT/#token=TOKEN, or --token-file FILE");
  return inspector_refusal("the inspector refuses " + part + " with status " + std::to_string(answer.status) +
                           ": " + answer.body.substr(0, 200));
}

job_snapshot snapshot_source::read() {
  job_snapshot made;
  for (const auto& name : snapshot_parts()) {
    auto answer =
        client_.get(target_of(name, made.part("job")), {{"Authorization", "Bearer " + address_.token}});
    if (answer.status == 404) continue;  // of an older version
    if (answer.status != 200) throw refused_answer(name, answer);
    auto value = json::parse(answer.body, nullptr, false);
    if (!value.is_object())
      throw inspector_refusal("expected JSON of a Troupe inspector as " + name + ", got '" +
                              answer.body.substr(0, 60) + "'");
    made.parts[name] = std::move(value);
  }
  if (made.part("job").empty())
    throw inspector_refusal("this is no inspector of Troupe: it has no /api/v1/job");
  for (const char* name : {"processes", "commands"})
    if (made.part(name).empty())
      throw inspector_refusal(
          "the job's program has another version than this troupe: its inspector has no /api/v1/" +
          std::string(name) + ". Use the troupe that was built with the program");
  made.at_ms = posix::unix_now_ms();
  return made;
}

void snapshot_source::require_fresh() {
  auto answer = client_.get("/healthz");
  if (answer.status == 200) return;
  auto age_s = number_in(json::parse(answer.body, nullptr, false), "age_s");
  throw inspector_refusal("what the inspector shows is " + std::to_string(static_cast<int>(age_s)) +
                          " s old: nobody gathers it any more, see the log of rank 0");
}

}  // namespace troupe
