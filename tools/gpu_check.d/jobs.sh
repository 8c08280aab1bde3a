# The parts of a run that run whole jobs on the GPU (../../docs/gpus.md): their bits, what kills do to them, their speed.

# job_command PROCESSES LAUNCHER_OPTIONS -- OPTIONS...: sets job to the command of a job, whose options are those of gpt.
job_command() {
  local processes=$1
  local -a launcher=()
  shift
  while [[ $1 != -- ]]; do launcher+=("$1") && shift; done
  shift
  job=("$work/bin/gpt" --json --data "$work/text" --epochs 100000 "$@")
  ((processes == 1)) || job=("$work/bin/troupe" launch --nproc-per-node "$processes" ${launcher[@]+"${launcher[@]}"} -- "${job[@]}")
}

# What the last job printed as the member NAME of its event EVENT.
said_by_job() { sed -nE "s/^.*\"event\":\"$1\".*\$/&/p" "$work/output" | sed -nE "s/.*\"$2\":\"?([^\",}]+).*/\1/p" | tail -n 1; }

# run_job NAME SHARE HASH COMMAND...: a job that must end with these weights, if any are given. Sets job_hash to those it ends with,
# step_state and step_reason. Says no, and that the step was skipped, without time.
run_job() {
  local name=$1 expected=$3
  begin_step "$name" "$2" || return 1
  run_program UCX_MODULE_DIR="$work/lib/ucx" "${@:4}"
  job_hash=$(said_by_job done weights_sha256)
  step_state=passed step_reason=''
  if was_out_of_time; then
    step_state=incomplete step_reason="its $step_limit s were up"
  elif ((exit_status != 0)); then
    step_state=failed step_reason=$(ending)
  elif [[ -z $job_hash ]]; then
    step_state=failed step_reason="it did not say what its weights are"
  elif [[ -n $expected && $job_hash != "$expected" ]]; then
    step_state=failed step_reason="its weights are ${job_hash:0:12}, those of one stage in one process ${expected:0:12}"
  fi
}

end_job() { end_step "$1" "$step_state" "$step_reason" "\"exit_code\":$exit_status,\"weights\":$(json_string "$job_hash")"; }

# has_jobs STEP: says no, and that it is skipped, where the pack has none.
has_jobs() {
  [[ -x $work/bin/gpt ]] || { skip_step "$1" "no jobs are packed: the build has no actors" && return 1; }
  ! skip_without "$1" cublaslt cudnn || return 1
  head -c 65536 "$here/gpu_check.d/jobs.sh" >"$work/text"
  local -i count
  for ((count = 0; count < 3; ++count)); do cat "$work/text" "$work/text" >"$work/text2" && mv "$work/text2" "$work/text"; done
}

# run_forms NAME FORM...: jobs of $tiny in these forms, PROCESSES OPTIONS, which must end with the weights of the first. Counts $share down.
run_forms() {
  local form expected=''
  for form in "${@:2}"; do
    # shellcheck disable=SC2086  # a form is several words
    job_command ${form%% *} -- "${tiny[@]}" ${form#* }
    share=$((share - 1))
    run_job "$1 $form" "$((share + 1))" "$expected" "${job[@]}" || continue
    end_job "$1 $form"
    [[ -n $expected ]] || expected=$job_hash
  done
}

# In every form of a job the same bits, in f32 and bf16: schedules, stages, processes and replicas, all on one GPU.
part_jobs() {
  has_jobs jobs || return 0
  local precision share=20 job_hash=''
  local -a job tiny
  for precision in f32 bf16; do
    tiny=(--size tiny --batch 16 --microbatches 4 --steps 6 --precision "$precision" --device cuda:0)
    run_forms "$precision" "1 --stages 1" "1 --stages 4 --devices 4 --schedule zb_h1" "2 --stages 2" "4 --stages 4 --schedule gpipe" \
      "2 --stages 4 --schedule zb_v" "2 --stages 4 --schedule interleaved_1f1b" "2 --stages 2 --verify-frames"
    run_forms "$precision" "1 --replicas 2 --stages 1 --devices 2" "2 --replicas 2 --stages 1" "4 --replicas 2 --stages 2"
  done
}

# Processes are killed while work is queued on the GPU they share: the same weights as without.
part_jobs_killed() {
  has_jobs jobs_killed || return 0
  local kill expected='' share=5 job_hash='' recovered
  local -a job tiny=(--size tiny --batch 16 --microbatches 4 --steps 120 --snapshot-every 4 --device cuda:0 --stages 2)
  job_command 1 -- "${tiny[@]}" --devices 2
  run_job "undisturbed" "$share" '' "${job[@]}" || return 0
  end_job "undisturbed"
  expected=$job_hash
  for kill in 1@20 0@35 1@50 0@75; do
    share=$((share - 1))
    job_command 2 --drill "$kill" -- "${tiny[@]}"
    run_job "rank ${kill%@*} killed at step ${kill#*@}" "$share" "$expected" "${job[@]}" || continue
    recovered=$(grep -c '"event":"recover' "$work/output")
    [[ $step_state != passed || $recovered -gt 0 ]] || { step_state=failed step_reason="no process was lost"; }
    end_job "rank ${kill%@*} killed at step ${kill#*@}"
  done
}

# samples_per_s of the later half of a job's steps, their median; nothing if it had none.
median_rate() {
  sed -nE 's/.*"event":"step".*"samples_per_s":([0-9.e+]+).*/\1/p' "$work/output" |
    awk '{ all[NR] = $1 } END { for (i = int(NR / 2) + 1; i <= NR; ++i) print all[i] }' | sort -g |
    awk '{ all[NR] = $1 } END { if (NR) print all[int((NR + 1) / 2)] }'
}

# GPT-2's width and depth on bytes in bf16, beside `troupe bench compute` of the same model: 16 sequences of 1024 a step.
part_bench_jobs() {
  has_jobs bench_jobs || return 0
  local form share=4 rate job_hash=''
  local -a job common=(--size gpt2 --batch 16 --microbatches 4 --steps 40 --precision bf16 --device cuda:0)
  for form in "1 --stages 1" "1 --stages 4 --devices 4" "1 --replicas 2 --stages 1 --devices 2" "1 --stages 1 --snapshot-every 1"; do
    # shellcheck disable=SC2086
    job_command ${form%% *} -- "${common[@]}" ${form#* }
    share=$((share - 1))
    run_job "$form" "$((share + 1))" '' "${job[@]}" || continue
    rate=$(median_rate)
    if [[ $step_state == passed && -n $rate ]]; then
      part_results[$part]+="${part_results[$part]:+,$'\n'}{\"job\":$(json_string "$form"),\"samples_per_s\":$rate}"
      printf '%s\t{"job":"%s","samples_per_s":%s}\n' "$form" "$form" "$rate" >>"$work/$part.results"
    fi
    end_job "$form"
  done
}
