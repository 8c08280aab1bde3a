# What a run found: gpu_check.json for programs, gpu_check.txt for people. Both are written anew, as a whole, after each
# step, so that a run that is cut off leaves what was done. Values come from globals that steps.sh and parts.sh fill:
#   part_state, part_reason, part_seconds   of each part
#   part_steps, part_results                JSON objects with commas between: its steps, and what its benches printed
#   facts                                   JSON members of the machine, with commas between

declare -A part_state part_reason part_seconds part_steps part_results
facts='' run_state=running exit_code=null

# json_string TEXT: a JSON string. Bytes that are no printable ASCII become "?".
json_string() {
  local LC_ALL=C text=$1
  text=${text//[!$'\t\n'[:print:]]/?}
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\n'/\\n}
  text=${text//$'\t'/\\t}
  printf '"%s"' "$text"
}

# add_fact NAME JSON: one member of the report's "machine".
add_fact() { facts+="${facts:+,}\"$1\":$2"; }

# write_whole FILE: standard input becomes FILE at once, or not at all.
write_whole() { cat >"$1.part" && mv -f "$1.part" "$1"; }

part_object() {
  local part=$1
  printf '{"part":"%s","state":"%s","reason":%s,"seconds":%d,"steps":[%s],"results":[%s]}' "$part" "${part_state[$part]}" \
    "$(json_string "${part_reason[$part]}")" "${part_seconds[$part]}" "${part_steps[$part]}" "${part_results[$part]}"
}

report_object() {
  local part separator=''
  printf '{"format":"troupe_gpu_check","format_version":1,"state":"%s","exit_code":%s,"started":"%s","seconds":%d,"limit_s":%d,\n' \
    "$run_state" "$exit_code" "$started" "$SECONDS" "$total_limit"
  printf '"machine":{%s},\n"parts":[' "$facts"
  for part in "${all_parts[@]}"; do
    printf '%s\n%s' "$separator" "$(part_object "$part")"
    separator=,
  done
  printf '\n]}\n'
}

# number_of KEY OBJECT: the number at KEY of a bench's line, or the median of the spread there.
number_of() { sed -nE "s/.*\"$1\":(\{\"median\":)?(-?[0-9][0-9.e+-]*).*/\2/p" <<<"$2"; }

percent() { awk "BEGIN { print 100 * ${1:-0} }"; }

compute_lines() {
  local step line
  while IFS=$'\t' read -r step line; do
    LC_ALL=C printf '  %-20s %10.0f tokens/s  %5.1f %% of %.0f TFLOP/s  %5.1f %% of %.0f GB/s\n' "$step" \
      "$(number_of tokens_per_s "$line")" "$(percent "$(number_of of_product_rate "$line")")" \
      "$(awk "BEGIN { print $(number_of product_gflops_per_s "$line") / 1e3 }")" \
      "$(percent "$(number_of of_copy_rate "$line")")" "$(number_of copy_gb_per_s "$line")"
  done <"$work/bench_compute.results"
}

# The rates that each step measured, and the kernels furthest from them.
kernel_lines() {
  local step line
  while IFS=$'\t' read -r step line; do
    [[ $line != *'"event":"rates"'* ]] || LC_ALL=C printf '  %-4s product %.0f GFLOP/s, copy %.0f GB/s\n' "$step" \
      "$(number_of product_gflops_per_s "$line")" "$(number_of copy_gb_per_s "$line")"
  done <"$work/bench_kernels.results"
  echo "  furthest from their floors:"
  sed -nE 's/^([^\t]*)\t.*"kernel":"([^"]*)".*"us":([0-9.e+-]*).*"of_floor":([0-9.e+-]*).*/\4\t\2\t\1\t\3/p' \
    "$work/bench_kernels.results" | LC_ALL=C sort -g | head -n 10 |
    LC_ALL=C awk -F'\t' '{ printf "  %5.1f %%  %-28s %-4s %10.1f us\n", 100 * $1, $2, $3, $4 }'
}

job_lines() {
  local step line
  while IFS=$'\t' read -r step line; do
    LC_ALL=C printf '  %8.1f samples/s  %s\n' "$(number_of samples_per_s "$line")" "$step"
  done <"$work/bench_jobs.results"
}

report_text() {
  local part
  echo "gpu_check of $started: $run_state after $SECONDS s of $total_limit$([[ $exit_code == null ]] || echo ", exit code $exit_code")"
  cat "$work/facts"
  for part in "${all_parts[@]}"; do
    printf '%-13s %-10s %4d s  %s\n' "$part" "${part_state[$part]}" "${part_seconds[$part]}" "${part_reason[$part]}" | cut -c1-200
  done
  [[ ! -s $work/failures ]] || { echo "failed:" && head -n 14 "$work/failures" | cut -c1-200 | sed 's/^/  /'; }
  [[ ! -s $work/bench_compute.results ]] || { echo "training steps:" && compute_lines; }
  [[ ! -s $work/bench_jobs.results ]] || { echo "jobs:" && job_lines; }
  [[ ! -s $work/bench_kernels.results ]] || { echo "kernels:" && kernel_lines; }
}

write_report() {
  report_object | write_whole "$output/gpu_check.json"
  report_text | write_whole "$output/gpu_check.txt"
}

# tell TEXT: a line for who watches the run.
tell() { [[ $prints == json ]] || echo "$@"; }
