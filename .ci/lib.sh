# Functions of the scripts in .ci: running a step, and installing its tools below target/tools, once per version.
# shellcheck shell=bash

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/target/tools

step() {
    echo "== $*" >&2
    "$@"
}

# python_tool NAME==VERSION: a Python package in its own environment.
python_tool() {
    local environment=$tools/$1
    if [ ! -x "$environment/bin/${1%%==*}" ]; then
        echo "== installing $1" >&2
        python3 -m venv "$environment"
        "$environment/bin/pip" install --quiet --disable-pip-version-check "$1"
    fi
}

# cargo_tool NAME VERSION: a Rust program.
cargo_tool() {
    local root=$tools/$1-$2
    if [ ! -x "$root/bin/$1" ]; then
        echo "== installing $1 $2" >&2
        CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --version "$2" --root "$root" "$1"
    fi
}

# python_environment REQUIREMENTS: prints the environment with the packages of this file of pinned requirements.
python_environment() {
    local environment
    environment=$tools/python-$(sha256sum "$1" | cut -c 1-16)
    if [ ! -e "$environment/complete" ]; then
        echo "== installing the packages of $1" >&2
        python3 -m venv --clear "$environment" >&2
        "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$1" >&2
        touch "$environment/complete"
    fi
    echo "$environment"
}

# npm_environment DIRECTORY: prints a directory whose node_modules has the packages of DIRECTORY's package-lock.json.
npm_environment() {
    local environment
    environment=$tools/npm-$(sha256sum "$1/package-lock.json" | cut -c 1-16)
    if [ ! -e "$environment/complete" ]; then
        echo "== installing the packages of $1/package-lock.json" >&2
        mkdir -p "$environment"
        cp "$1/package.json" "$1/package-lock.json" "$1/.npmrc" "$environment"
        (cd "$environment" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error) >&2
        touch "$environment/complete"
    fi
    echo "$environment"
}

# debian_program PROGRAM [PACKAGE]: installs the Debian package of a program that is missing.
debian_program() {
    command -v "$1" >/dev/null && return
    local package=${2:-$1} as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    echo "== missing: $1; installing with apt-get: $package" >&2
    if ! command -v apt-get >/dev/null; then
        echo "apt-get was not found: install $1 manually, then run this command again" >&2
        return 1
    fi
    "${as_root[@]}" apt-get update -q >&2
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends "$package" >&2
}
