# gpu_check --pack: a folder with this script and programs.tar.gz, in which are the project's programs (bin/), the small
# libraries that they link (lib/), and pack.txt, which says what they are. CUDA's libraries are not in it: those of the machine
# that runs it count.

packed_programs=(troupe gpu_memory_test ops_gpu_test ops_cuda_test autograd_functions_gpu_test nn_gpu_test collective_nccl_gpu_test)
# Of builds with actors: what jobs need.
packed_jobs=(gpt stage_programs_gpu_test)
most_packed_mib=64

cannot_pack() {
  echo "gpu_check --pack: $*" >&2
  exit 2
}

# cached NAME: a variable of the build's CMake cache.
cached() { sed -nE "s/^$1:[A-Z]+=//p" "$build/CMakeCache.txt"; }

# compiled_for ARCH: how GPUs of this architecture run the build, or nothing if they cannot. A GPU runs machine code of its own
# generation, and its driver compiles PTX of its own or an older architecture.
compiled_for() {
  local each number generation
  local -a all
  IFS=';' read -ra all <<<"$(cached CMAKE_CUDA_ARCHITECTURES)"
  for each in "${all[@]}"; do
    number=${each%%[!0-9]*}
    generation=$((number / 10))
    if [[ $each != *-virtual ]] && ((generation == $1 / 10 && number <= $1)); then
      echo "machine code for $number"
      return
    fi
  done
  for each in "${all[@]}"; do
    number=${each%%[!0-9]*}
    [[ $each == *-real || $each == *[a-z] ]] || ((number > $1)) || { echo "PTX for $number, which its driver compiles at the first run" && return; }
  done
}

# A build folder of its own for one architecture.
build_for() {
  build=$root/build/gpu_check-$1
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTROUPE_CUDA=ON "-DCMAKE_CUDA_ARCHITECTURES=$1-real"
  cmake --build "$build" --target "${packed_programs[@]}" "${packed_jobs[@]}"
}

choose_build() {
  if [[ -z $build && -n $arch ]]; then
    build_for "$arch"
  fi
  build=${build:-$root/build/release}
  [[ -f $build/CMakeCache.txt ]] || cannot_pack "$build is no build folder: build one, or give --arch, which makes one for itself"
  build=$(cd "$build" && pwd)
  [[ $(cached TROUPE_CUDA) == ON ]] || cannot_pack "$build was built without CUDA (TROUPE_CUDA is '$(cached TROUPE_CUDA)')"
  [[ -z $(cached TROUPE_SANITIZE) ]] || cannot_pack "$build was built with sanitizers"
  local program
  for program in "${packed_programs[@]}"; do
    [[ -x $build/bin/$program ]] || cannot_pack "$build/bin/$program is not there: cmake --build $build --target ${packed_programs[*]}"
  done
  if [[ $(cached TROUPE_ACTORS) == OFF ]]; then
    echo "no jobs are packed: $build was built without actors"
  else
    for program in "${packed_jobs[@]}"; do
      [[ -x $build/bin/$program ]] || cannot_pack "$build/bin/$program is not there: cmake --build $build --target ${packed_jobs[*]}"
    done
    packed_programs+=("${packed_jobs[@]}")
  fi
  if [[ -n $arch ]]; then
    [[ -n $(compiled_for "$arch") ]] || cannot_pack "$build is for GPUs $(cached CMAKE_CUDA_ARCHITECTURES), which $arch cannot run: leave --build out"
    echo "from $build: GPUs $arch run $(compiled_for "$arch")"
  else
    echo "from $build, for GPUs $(cached CMAKE_CUDA_ARCHITECTURES)"
  fi
}

# Those that a program links, but for the C library and its parts, which every machine has: name and path.
linked_libraries() {
  ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
    grep -vE '^(ld-linux|libc|libm|libdl|librt|libpthread|libresolv|libutil)[-.]'
}

pack_libraries() {
  local name path folder
  while read -r name path; do
    case $name in
      libstdc++* | libgcc_s* | libgomp*) folder=lib/compiler ;;
      libcu* | libnccl* | libnv*) continue ;;
      *) folder=lib ;;
    esac
    install -D -m 755 "$path" "$1/$folder/$name"
    strip --strip-unneeded "$1/$folder/$name"
  done < <(linked_libraries "$1"/bin/*)
}

# The transports of UCX, which it opens by itself: the parts for one host.
pack_ucx_modules() {
  local ucp folder name
  ucp=$(linked_libraries "$1"/bin/* | awk '$1 ~ /^libucp[.]/ { print $2; exit }')
  folder=$(dirname "$(readlink -f "${ucp:-/}")")/ucx
  for name in "$folder"/libuct_cma.so*; do
    [[ ! -f $name ]] || install -D -m 755 "$name" "$1/lib/ucx/$(basename "$name")"
  done
}

# version_in HEADER NAME: the number that a CUDA library's header defines.
version_in() { sed -nE "s/^#define $2[[:space:]]+([0-9]+).*/\1/p" "$1" 2>/dev/null | head -n 1; }

# soname LIBRARY HEADER NAME: the file that programs compiled with this header load, or nothing if it was not there.
soname() {
  local major
  major=$(version_in "$2" "$3")
  [[ -z $major ]] || echo "$1.so.$major"
}

describe_pack() {
  local headers
  headers=$(dirname "$(readlink -f "$(cached CUDAToolkit_NVCC_EXECUTABLE)")")/../include
  [[ -d $headers ]] || headers=$(cached CUDAToolkit_CUPTI_INCLUDE_DIR)
  echo "commit=$("$build/bin/troupe" --version | sed -nE 's/.*\(commit (.*)\).*/\1/p')"
  echo "architectures=$(cached CMAKE_CUDA_ARCHITECTURES)"
  echo "cuda=$("$(cached CUDAToolkit_NVCC_EXECUTABLE)" --version | sed -nE 's/.*release ([0-9.]+).*/\1/p')"
  echo "cuda_driver=libcuda.so.1"
  echo "cublaslt=$(soname libcublasLt "$headers/cublas_api.h" CUBLAS_VER_MAJOR)"
  echo "cudnn=$(soname libcudnn "$(cached TROUPE_CUDNN_INCLUDE_DIR)/cudnn_version.h" CUDNN_MAJOR)"
  echo "nccl=$(soname libnccl "$(cached TROUPE_NCCL_INCLUDE_DIR)/nccl.h" NCCL_MAJOR)"
}

pack() {
  root=$(cd "$here/.." && pwd)
  choose_build
  local folder=${output:-$root/build/gpu_check} program mib
  contents=$(mktemp -d)
  trap 'rm -rf "$contents"' EXIT
  mkdir "$contents/bin"
  for program in "${packed_programs[@]}"; do
    install -m 755 "$build/bin/$program" "$contents/bin/"
    strip "$contents/bin/$program"
  done
  pack_libraries "$contents"
  pack_ucx_modules "$contents"
  describe_pack >"$contents/pack.txt"
  rm -rf "$folder"/{gpu_check,gpu_check.d,programs.tar.gz}
  mkdir -p "$folder"
  cp -r "$here/gpu_check" "$here/gpu_check.d" "$folder/"
  tar -C "$contents" -czf "$folder/programs.tar.gz" bin lib pack.txt
  mib=$(($(du -scb "$folder"/{gpu_check,gpu_check.d,programs.tar.gz} | tail -n 1 | cut -f1) / 1048576 + 1))
  echo "packed $folder: $mib MiB"
  ((mib <= most_packed_mib)) || cannot_pack "the folder is larger than $most_packed_mib MiB, more than is easily carried"
}
