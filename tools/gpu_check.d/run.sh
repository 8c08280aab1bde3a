# A run: one part after the other, the report at the end, and what is left when somebody ends it.

# run_part NAME
run_part() {
  part=$1
  part_began=$SECONDS
  part_deadline=$((SECONDS + part_limit[$part]))
  part_state[$part]=running
  if [[ -z $gpu_name && ($part == sanitizer || $part == jobs* || $part == bench_*) ]]; then
    skip_step "$part" "no GPU"
  else
    "part_$part"
  fi
  part_seconds[$part]=$((SECONDS - part_began))
  write_report
  tell "$(printf '%-13s %-10s %4d s  %s' "$part" "${part_state[$part]}" "${part_seconds[$part]}" "${part_reason[$part]}")"
  [[ $prints == text ]] || part_object "$part" | tr '\n' ' ' | sed 's/ *$/\n/'
}

finish() {
  local name worst=passed
  for name in "${chosen[@]}"; do
    worst=$(worse_of "$worst" "${part_state[$name]}")
  done
  case $worst in
    passed) exit_code=0 ;;
    failed) exit_code=1 ;;
    *) exit_code=3 ;;
  esac
  run_state=finished
  write_report
  if [[ $prints == json ]]; then report_object | tr '\n' ' ' && echo; else echo && cat "$output/gpu_check.txt"; fi
  exit "$exit_code"
}

# A run that is ended from outside keeps what it has found.
interrupted() {
  trap '' TERM INT HUP
  [[ -z $child ]] || kill -TERM "$child" 2>/dev/null || true
  run_state=interrupted exit_code=1
  [[ -z $part || ${part_state[$part]} != running ]] || part_reason[$part]="the run was ended"
  write_report
  [[ -z $child ]] || wait "$child" 2>/dev/null || true
  exit 1
}

begin_run() {
  started=$(date -u +%Y-%m-%dT%H:%M:%SZ)
  deadline=$((SECONDS + total_limit))
  output=${output:-$here/results}
  mkdir -p "$output" && output=$(cd "$output" && pwd) || bad_arguments "--output: cannot make the folder '$output'"
  rm -f "$output"/gpu_check.{json,txt,log}
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  tar -C "$work" -xzf "$here/programs.tar.gz"
  # From here on each outcome is looked at, and a tool that fails or stops reading does not end the run.
  set +e +o pipefail
  : >"$work/facts"
  : >"$output/gpu_check.log"
  chosen=("${all_parts[@]}")
  [[ -z $only ]] || IFS=, read -ra chosen <<<"$only"
  for part in "${all_parts[@]}"; do
    part_state[$part]='not asked' part_reason[$part]='' part_seconds[$part]=0 part_steps[$part]='' part_results[$part]=''
  done
  for part in "${chosen[@]}"; do part_state[$part]='not reached'; done
  part=''
  trap interrupted TERM INT HUP
}

run_parts() {
  local name
  begin_run
  find_libraries
  gpu_name=$(ask_gpu name)
  [[ -n $gpu_name ]] || tell "No GPU is to be seen here: what needs one is skipped."
  for name in "${all_parts[@]}"; do
    [[ " ${chosen[*]} " != *" $name "* ]] || run_part "$name"
  done
  finish
}
