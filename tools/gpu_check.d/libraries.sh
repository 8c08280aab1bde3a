# CUDA's libraries of this machine: which there are, where, and what the programs need to load them.
# Looked for in --libraries, LD_LIBRARY_PATH, what ldconfig knows, the toolkit's usual folders, and among the packages of
# Python, where PyTorch brings them.

declare -A library_file   # by the name in pack.txt: the file, or empty
search_path=''            # folders that the loader must be told, with colons between

# packed KEY: what pack.txt says of it.
packed() { sed -n "s/^$1=//p" "$work/pack.txt"; }

usual_folders() {
  local -a patterns=(/usr/local/cuda*/lib64 /usr/local/cuda*/lib /usr/local/cuda*/targets/*-linux/lib /usr/local/nvidia/lib*
    /usr/lib/*-linux-gnu /usr/lib64 /usr/lib/wsl/lib /opt/cuda/lib64
    {/usr,/usr/local,/opt/*,/opt/*/.venv,"${HOME:-/root}/.local","${VIRTUAL_ENV:-/usr}","${CONDA_PREFIX:-/usr}"}/lib/python3*/{site,dist}-packages/nvidia/*/lib)
  local folder
  for folder in "${patterns[@]}" $(python3 -c 'import nvidia; print(*[path + "/*/lib" for path in nvidia.__path__])' 2>/dev/null); do
    [[ ! -d $folder ]] || echo "$folder"
  done
}

# below FOLDERS: each of them, which colons separate, and the library folders in it.
below() {
  local -a given
  local each folder
  IFS=: read -ra given <<<"$1"
  for each in ${given[@]+"${given[@]}"}; do
    for folder in "$each" "$each"/lib64 "$each"/lib "$each"/*/lib; do
      [[ ! -d $folder ]] || echo "$folder"
    done
  done
}

# first_with FILE: the first folder on standard input that has it.
first_with() {
  local folder
  while IFS= read -r folder; do
    [[ -e $folder/$1 ]] && echo "$folder" && return
  done
  return 1
}

known_to_loader() {
  { ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null; } | awk -v name="$1" '$1 == name { print $NF; exit }'
}

# find_library KEY FILE: fills library_file[KEY], and search_path where the loader would not find it by itself.
find_library() {
  local key=$1 name=$2 folder
  library_file[$key]=''
  if folder=$(below "$libraries" | first_with "$name"); then
    search_path+=":$folder"
  elif folder=$(below "${LD_LIBRARY_PATH-}" | first_with "$name"); then
    search_path+=":$folder"
  elif folder=$(known_to_loader "$name") && [[ -e $folder ]]; then  # its cache may be out of date
    folder=$(dirname "$folder")
  elif folder=$(usual_folders | first_with "$name"); then
    search_path+=":$folder"
  else
    return 0
  fi
  library_file[$key]=$folder/$name
}

# The programs' own libraries come first. The compiler's are taken along, but only used where this machine's are too old.
programs_path() {
  local path="$work/lib$search_path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" program
  for program in "$work"/bin/*; do
    if LD_LIBRARY_PATH=$path ldd "$program" 2>&1 | grep -q 'not found'; then
      path=$path:$work/lib/compiler
      break
    fi
  done
  echo "$path"
}

find_libraries() {
  local key
  for key in cuda_driver cublaslt cudnn nccl; do
    find_library "$key" "$(packed "$key")"
  done
  search_path=$(programs_path)
}

# missing KEY...: those that there are not, as a reason to skip what needs them.
missing() {
  local key names=''
  for key in "$@"; do
    [[ -n ${library_file[$key]} ]] || names+="${names:+, }$(packed "$key")"
  done
  [[ -z $names ]] || echo "not found here: $names; say where with --libraries PATH"
}
