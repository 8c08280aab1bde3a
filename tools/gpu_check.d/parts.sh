# The parts of a run, in order: what tells most comes first, so that a run that is cut off was worth its time.

all_parts=(versions memory operations sanitizer gpu_tests nccl jobs jobs_killed bench_kernels bench_compute bench_jobs)
# Seconds that a part has at most. Together they are more than a run has: most need a fraction.
declare -A part_limit=([versions]=30 [memory]=60 [operations]=180 [sanitizer]=120 [gpu_tests]=90 [nccl]=45 [jobs]=240 [jobs_killed]=120 [bench_kernels]=150 [bench_compute]=200
  [bench_jobs]=150)
part='' gpu_name=''

# ask_gpu FIELDS: what nvidia-smi says of the first GPU, with ", " between the fields, or nothing if it fails: its errors go
# to its standard output too. Only ever reads.
ask_gpu() {
  local said
  said=$(timeout 20 nvidia-smi -i 0 "--query-gpu=$1" --format=csv,noheader 2>/dev/null) || return 0
  echo "${said%%$'\n'*}"
}

add_gpu_facts() {
  local fields=driver_version,compute_cap,memory.total,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,power.limit
  fields+=,temperature.gpu,pstate,persistence_mode,ecc.mode.current,mig.mode.current
  local -a names values
  local index members text
  IFS=, read -ra names <<<"$fields"
  IFS=, read -ra values <<<"$(ask_gpu "$fields")"
  members="\"name\":$(json_string "$gpu_name")" text="GPU $gpu_name"
  for index in "${!values[@]}"; do
    members+=",\"${names[$index]}\":$(json_string "${values[$index]# }")"
    text+=", ${names[$index]} ${values[$index]# }"
  done
  add_fact gpu "{$members}"
  fold -s -w 150 <<<"$text" >>"$work/facts"
}

add_library_facts() {
  local key members='' resolved
  for key in cuda_driver cublaslt cudnn nccl; do
    resolved=''
    [[ -z ${library_file[$key]} ]] || resolved=$(readlink -f "${library_file[$key]}")
    members+="${members:+,}\"$key\":{\"wanted\":$(json_string "$(packed "$key")"),\"file\":$(json_string "${library_file[$key]}")"
    members+=",\"resolved\":$(json_string "$resolved")}"
    echo "$(packed "$key"): ${resolved:-not found}" >>"$work/facts"
  done
  add_fact libraries "{$members}"
}

part_versions() {
  step_seconds=0
  add_fact host "$(json_string "$(uname -srm), $(nproc) cores, $(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME-}")")"
  add_fact programs "$(json_string "commit $(packed commit), GPUs $(packed architectures), CUDA $(packed cuda)")"
  echo "programs of commit $(packed commit) for GPUs $(packed architectures), CUDA $(packed cuda); $(uname -srm), $(nproc) cores" >>"$work/facts"
  add_library_facts
  if [[ -z $gpu_name ]]; then
    echo "GPU none" >>"$work/facts"
    skip_step gpu "no GPU: nvidia-smi $(command -v nvidia-smi >/dev/null && echo "sees none" || echo "is not here")"
    return
  fi
  add_gpu_facts
  begin_step gpu || return 0
  run_limited nvidia-smi -q
  local driver_cuda
  driver_cuda=$(sed -nE 's/^CUDA Version *: *//p' "$work/output" | head -n 1)
  add_fact driver_cuda "$(json_string "$driver_cuda")"
  echo "driver for CUDA up to ${driver_cuda:-unknown}; the programs were compiled with $(packed cuda)" >>"$work/facts"
  end_step gpu passed ''
  local why
  why=$(missing cuda_driver cublaslt cudnn nccl)
  [[ -z $why ]] || skip_step libraries "$why"
}

part_memory() { run_tests gpu_memory_test; }

part_operations() {
  run_tests ops_gpu_test '~[host]'
  run_tests ops_cuda_test
}

# sanitize TOOL SHARE: the cases that hold each kernel of ours to the CPU, without those that mostly run a library's kernels.
# The tool initcheck does not see what a graph's kernels write before its copies read that, and would report those copies.
sanitize() {
  local sanitizer summary
  local -a cases=('GPUs:*' '~*convolutions*' '~*linear*' '~*products*')
  [[ $1 != initcheck ]] || cases+=('~[graph]')
  sanitizer=$(compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | head -n 1) || true
  sanitizer=$(command -v compute-sanitizer || echo "$sanitizer")
  [[ -n $sanitizer ]] || { skip_step "$1" "there is no compute-sanitizer here" && return; }
  begin_step "$1" "$2" || return 0
  rm -f "$work/cases.xml"
  run_program "$sanitizer" --tool "$1" --error-exitcode 86 --report-api-errors no "$work/bin/ops_gpu_test" "${cases[@]}" \
    --reporter console --reporter "xml::out=$work/cases.xml"
  if was_out_of_time && [[ -f $work/cases.xml ]] && ! grep -q '^=========.*\(Invalid\|hazard\|Uninitialized\|Barrier\)' "$work/output"; then
    read_cases
    end_step "$1" incomplete "its $step_limit s were up after $cases_passed cases without an error"
  elif grep -qi 'device not supported\|unable to find injection\|not supported on this' "$work/output" "$work/errors"; then
    end_step "$1" skipped "compute-sanitizer refuses: $(grep -hi 'not supported\|unable to find' "$work/output" "$work/errors" | head -n 1)"
  elif ((exit_status == 86)); then
    summary=$(grep -h '^========= ' "$work/output" "$work/errors" | grep -v 'COMPUTE-SANITIZER' | head -n 1)
    end_step "$1" failed "${summary#========= }; $(grep -h 'SUMMARY' "$work/output" "$work/errors" | tail -n 1)"
  else
    end_test_step "$1"
  fi
}

part_sanitizer() {
  local tools=(memcheck racecheck synccheck initcheck) tool index=0
  for tool in "${tools[@]}"; do
    sanitize "$tool" $((${#tools[@]} - index))
    index=$((index + 1))
  done
}

part_gpu_tests() {
  run_tests autograd_functions_gpu_test '~[host]'
  run_tests nn_gpu_test
  if [[ -x $work/bin/stage_programs_gpu_test ]]; then
    run_tests stage_programs_gpu_test '~[host]'
  else
    skip_step stage_programs_gpu_test "not packed: the build has no actors"
  fi
}

part_nccl() { skip_without collective_nccl_gpu_test nccl || run_tests collective_nccl_gpu_test; }

part_bench_kernels() {
  skip_without kernels cublaslt cudnn && return
  local threads
  threads=$(nproc)
  run_bench bf16 4 kernels --device cuda:0 --dtype bf16 --threads "$threads" --rounds 3
  run_bench f32 3 kernels --device cuda:0 --dtype f32 --threads "$threads" --rounds 3
  run_bench tf32 2 kernels --device cuda:0 --dtype tf32 --only linear --threads "$threads" --rounds 3
  run_bench "tf32 attention" 1 kernels --device cuda:0 --dtype tf32 --only attention --threads "$threads" --rounds 3
}

# GPT-2 124M: a step is 16 sequences of 1024 tokens, and 4 where the GPU has less than 40,000 MiB.
part_bench_compute() {
  skip_without gpt2 cublaslt && return
  local batch=16 dtype queueing share=6 common
  [[ $(ask_gpu memory.total) =~ ^([0-9]+) ]] && ((BASH_REMATCH[1] < 40000)) && batch=4
  common=(compute --device cuda:0 --model gpt2 --batch "$batch" --rounds 1 --seconds 4 --threads "$(nproc)")
  for dtype in bf16 tf32 f32; do
    for queueing in '' --queue-each-kernel; do
      run_bench "$dtype${queueing:+ without graphs}" "$share" "${common[@]}" --dtype "$dtype" $queueing
      share=$((share - 1))
    done
  done
}
