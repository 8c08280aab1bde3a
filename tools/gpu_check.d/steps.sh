# Running one program within its time, and what it came to. A step ends as passed, failed, incomplete (what ran passed,
# the rest did not run) or skipped; a part is as its worst step.

child=''           # the program under way
step_limit=0       # seconds that it has
step_reason=''
passed_cases=0

remaining() { echo $((deadline - SECONDS)); }

# run_limited COMMAND...: its standard output goes to $work/output, its errors to $work/errors, all of it to the log.
# Sets exit_status: 124 or 137 where the time ended it.
run_limited() {
  local began=$SECONDS
  exit_status=0
  timeout --kill-after=5 "$step_limit" "$@" >"$work/output" 2>"$work/errors" </dev/null &
  child=$!
  wait "$child" || exit_status=$?
  child=''
  step_seconds=$((SECONDS - began))
  {
    printf '\n=== %s\n(exit code %d after %d s)\n' "$*" "$exit_status" "$step_seconds"
    head -c 200000 "$work/output"
    head -c 200000 "$work/errors"
  } >>"$output/gpu_check.log"
}

# run_program [VARIABLE=VALUE...] COMMAND...: one of the programs packed here, with the libraries that it needs.
run_program() {
  run_limited env LD_LIBRARY_PATH="$search_path" OMP_WAIT_POLICY=passive CUDA_CACHE_PATH="${CUDA_CACHE_PATH:-$work/cuda_cache}" \
    CUDA_CACHE_MAXSIZE="${CUDA_CACHE_MAXSIZE:-1073741824}" "$@"
}

was_out_of_time() { [[ $exit_status == 124 || $exit_status == 137 ]] && ((step_seconds >= step_limit)); }

# How a program ended that did not end well: with a signal's name or its exit code, and the last line of its errors.
ending() {
  local text="exit code $exit_status" words
  ((exit_status <= 128)) || text="SIG$(kill -l $((exit_status - 128)) 2>/dev/null || echo "NAL $((exit_status - 128))")"
  words=$(grep -v '^[[:space:]]*$' "$work/errors" | tail -n 1 | cut -c1-160) || true
  echo "$text${words:+: $words}"
}

severity() {
  case $1 in
    failed) echo 4 ;;
    incomplete) echo 3 ;;
    skipped) echo 2 ;;
    passed) echo 1 ;;
    *) echo 0 ;;
  esac
}

# Some passed and some were skipped: incomplete.
worse_of() {
  if [[ "$1 $2" == 'passed skipped' || "$1 $2" == 'skipped passed' ]]; then
    echo incomplete
  elif (($(severity "$2") > $(severity "$1"))); then
    echo "$2"
  else
    echo "$1"
  fi
}

# end_step NAME STATE REASON [MEMBERS]: MEMBERS are more of the step's JSON.
end_step() {
  local name=$1 state=$2 reason=$3 members=${4-}
  part_steps[$part]+="${part_steps[$part]:+,}{\"step\":$(json_string "$name"),\"state\":\"$state\",\"reason\":$(json_string "$reason")"
  part_steps[$part]+=",\"seconds\":$step_seconds${members:+,$members}}"
  part_state[$part]=$(worse_of "${part_state[$part]}" "$state")
  [[ -z $reason ]] || part_reason[$part]+="${part_reason[$part]:+; }$name: $reason"
  [[ $state != failed ]] || echo "$part: $name: $reason" >>"$work/failures"
  part_seconds[$part]=$((SECONDS - part_began))
  write_report
}

# skip_step NAME REASON
skip_step() {
  step_seconds=0
  end_step "$1" skipped "$2"
}

# begin_step NAME [SHARE]: gives it a SHARE-th of what its part has left. Says no, and that it was skipped, without time.
begin_step() {
  local left=$((part_deadline - SECONDS))
  ((left < $(remaining))) || left=$(remaining)
  step_limit=$((left / ${2:-1}))
  ((step_limit < 2)) || return 0
  skip_step "$1" "no time was left"
  return 1
}

# skip_without NAME LIBRARY...: says yes, and that the step was skipped, where one of these libraries is not there.
skip_without() {
  local why
  why=$(missing "${@:2}")
  [[ -n $why ]] || return 1
  skip_step "$1" "$why"
}

# read_cases: what Catch2's XML in $work/cases.xml says, into the cases_* globals.
read_cases() {
  cases_passed=0 cases_failed=0 cases_skipped=0 cases_unloaded=0 cases_complete=0 cases_running='' cases_failures='' cases_why='' cases_without_gpu=0
  [[ -f $work/cases.xml ]] || return 0
  local key value
  while IFS=$'\t' read -r key value; do
    case $key in
      failure) cases_failures+="${cases_failures:+$'\n'}$value" ;;
      passed | failed | skipped | unloaded | complete | running | why | without_gpu) printf -v "cases_$key" %s "$value" ;;
    esac
  done < <(awk -f "$here/gpu_check.d/catch2_results.awk" "$work/cases.xml")
}

# The step's state and reason from how the program ended and from its cases.
judge_cases() {
  local in_case="${cases_running:+ in \"$cases_running\"}"
  if was_out_of_time; then
    step_state=failed step_reason="did not end within $step_limit s$in_case, after $cases_passed cases passed"
    if ((cases_failed == 0 && $(remaining) < 2)); then
      step_state=$( ((cases_passed > 0)) && echo incomplete || echo skipped)
      step_reason="the time of the whole check was up$in_case, after $cases_passed cases passed"
    fi
  elif ((cases_complete == 0)); then
    step_state=failed step_reason="$(ending)$in_case, after $cases_passed cases passed"
  elif ((cases_failed > 0)); then
    step_state=failed step_reason="$cases_failed of $((cases_passed + cases_failed + cases_skipped + cases_unloaded)) cases failed"
  elif ((exit_status != 0 && exit_status != 4 && cases_unloaded == 0)); then
    step_state=failed step_reason="$(ending), though no case failed"
  elif ((cases_unloaded > 0)) && [[ -z $(missing cuda_driver cublaslt cudnn nccl) ]]; then
    step_state=failed step_reason="$cases_unloaded cases cannot load a library, though all were found: see gpu_check.log"
  elif ((cases_unloaded > 0)); then
    step_state=$( ((cases_passed > 0)) && echo incomplete || echo skipped)
    step_reason="$cases_unloaded cases need a library that is not here"
  elif ((cases_passed == 0 || cases_without_gpu > 0)); then
    step_state=skipped step_reason="$cases_skipped of $((cases_passed + cases_skipped)) cases skipped themselves: ${cases_why:-no reason given}"
    [[ -z $gpu_name || $cases_without_gpu == 0 ]] || step_reason+=" (though nvidia-smi sees $gpu_name: is its driver new enough for CUDA $(packed cuda)?)"
  else
    step_state=passed step_reason=''
    ((cases_skipped == 0)) || step_reason="$cases_skipped cases skipped themselves: $cases_why"
  fi
}

# end_test_step NAME: after its program has run.
end_test_step() {
  local failure
  read_cases
  judge_cases
  end_step "$1" "$step_state" "$step_reason" "\"exit_code\":$exit_status,\"cases\":{\"passed\":$cases_passed,\"failed\":$cases_failed,\
\"skipped\":$cases_skipped,\"without_library\":$cases_unloaded},\"failures\":$(json_string "$cases_failures")"
  while IFS= read -r failure; do
    [[ -z $failure ]] || echo "  $failure" >>"$work/failures"
  done <<<"$cases_failures"
  write_report
}

# run_tests PROGRAM [SPEC...]: a Catch2 program of bin/, in the time that its part has left.
run_tests() {
  local program=$1
  begin_step "$program" || return 0
  rm -f "$work/cases.xml"
  run_program "$work/bin/$program" "${@:2}" --reporter console --reporter "xml::out=$work/cases.xml"
  end_test_step "$program"
}

# run_bench NAME SHARE ARGUMENTS...: `troupe bench ARGUMENTS --json`, whose whole lines are results. Right after it, the GPU's
# clocks, power and temperature, and what holds the clocks down, are read.
run_bench() {
  local name=$1 line count=0 separator after
  begin_step "$name" "$2" || return 0
  run_program "$work/bin/troupe" bench "${@:3}" --json
  after="$(ask_gpu clocks.sm,clocks.mem,power.draw,temperature.gpu), $(ask_gpu clocks_event_reasons.active)"
  while IFS= read -r line; do
    [[ $line == '{'*'}' ]] || continue
    separator=${part_results[$part]:+,$'\n'}
    part_results[$part]+=$separator$line
    printf '%s\t%s\n' "$name" "$line" >>"$work/$part.results"
    count=$((count + 1))
  done <"$work/output"
  step_state=passed step_reason=''
  if was_out_of_time; then
    step_state=$( ((count > 0)) && echo incomplete || echo skipped)
    step_reason="its $step_limit s were up after $count results"
  elif ((exit_status != 0)); then
    step_state=failed step_reason="$(ending), after $count results"
  elif ((count == 0)); then
    step_state=failed step_reason="printed no result"
  fi
  end_step "$name" "$step_state" "$step_reason" "\"exit_code\":$exit_status,\"results\":$count,\"gpu_after\":$(json_string "$after")"
}
