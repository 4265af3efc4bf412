# Shared by ./quickstart, ./test, .ci/run, tests/fuzz/run and bench/run: messages, packages, builds. Sourced, not run.
# The caller has set ROOT to the root of the repository.

# What a compiler cache keeps of one checkout serves the next.
export CCACHE_BASEDIR=$ROOT CCACHE_NOHASHDIR=true

# step TEXT: a heading with the time since the start.
step() { printf '\n== [%3ds] %s\n' "$SECONDS" "$*"; }

# fail TEXT: one clear line, exit 1 (or $EXIT).
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit "${EXIT:-1}"
}

# packages GROUP...: the packages of these groups of tools/deps.txt.
packages() {
  local group
  for group in "$@"; do
    awk -v group="$group" '$1 == group { print $2 }' "$ROOT/tools/deps.txt"
  done
}

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || printf '%s ' "$package"
  done
}

# ensure_packages GROUP...: installs what is missing as root or with passwordless sudo, else says how and exits 2.
ensure_packages() {
  local wanted missing sudo=()
  wanted=$(packages "$@")
  if ! command -v dpkg-query >/dev/null; then
    EXIT=2 fail "this is no Debian-like system: install what tools/deps.txt lists, then run again with --no-deps"
  fi
  missing=$(missing_packages $wanted)
  if [ -z "$missing" ]; then
    echo "all $(wc -w <<<"$wanted") packages are installed"
    return
  fi
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      sudo=(sudo -n)
    else
      echo "Missing packages; install them with this line, then run again:"
      echo "sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing% }"
      exit 2
    fi
  fi
  echo "installing: ${missing% }"
  mkdir -p "$ROOT/build"
  local log=$ROOT/build/apt.log
  # One unreachable extra source fails `update` although ours are fine, so only `install` decides.
  "${sudo[@]}" apt-get -o Acquire::Retries=3 update >"$log" 2>&1 </dev/null || true
  if ! "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -y \
    --no-install-recommends $missing >>"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    fail "apt-get could not install the packages (whole log: build/apt.log); check the network and the apt sources"
  fi
}

# logged LOG COMMAND...: runs a command with all output in build/LOG, of which the end is shown only on failure.
logged() {
  local log=build/$1
  shift
  mkdir -p "$(dirname "$ROOT/$log")"
  if ! (cd "$ROOT" && "$@") >"$ROOT/$log" 2>&1 </dev/null; then
    tail -n 40 "$ROOT/$log" >&2
    fail "'$*' failed; whole log: $log"
  fi
}

# configure PRESET
configure() {
  command -v cmake >/dev/null || fail "cmake is not installed; ./quickstart --deps installs what the build needs"
  # A source tree that was moved or copied leaves a cache that CMake refuses.
  local cache=$ROOT/build/$1/CMakeCache.txt
  if [ -f "$cache" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$ROOT" "$cache"; then
    rm -rf "${ROOT:?}/build/$1"
  fi
  if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  logged "configure-$1.log" cmake --preset "$1"
}

# build PRESET TARGET...: builds a configured preset (no target: everything) and prints the last line of the build.
build() {
  local preset=$1
  shift
  logged "build-$preset.log" cmake --build "build/$preset" ${1:+--target "$@"}
  tail -n 1 "$ROOT/build/build-$preset.log"
}

# sum_counts: adds up the lines `N passed, N failed` or `N passed, N failed, N skipped` of its input, others ignored.
sum_counts() {
  awk '/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { passed += $1; failed += $3; skipped += $5 }
       END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }'
}
