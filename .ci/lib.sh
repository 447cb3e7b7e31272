# Functions of the scripts in .ci: running a step, starting the service, and installing tools below target/tools, once per version.
# shellcheck shell=bash

tools=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/target/tools

# step COMMAND...: names the command before it, and what it took after it.
step() {
    local since=$SECONDS
    echo "== $*" >&2
    "$@"
    # Errors end the script before this line, except where the caller asks for the code.
    local code=$?
    echo "== $((SECONDS - since)) s: $*" >&2
    return "$code"
}

# python_venv DIRECTORY: an empty environment. Debian has the module in a package of its own.
python_venv() {
    python3 -c 'import ensurepip, venv' 2>/dev/null || debian_package python3-venv
    python3 -m venv --clear "$1" >&2
}

# python_tool NAME==VERSION: a Python package in its own environment.
python_tool() {
    local environment=$tools/$1
    if [ ! -x "$environment/bin/${1%%==*}" ]; then
        echo "== installing $1" >&2
        python_venv "$environment"
        "$environment/bin/pip" install --quiet --disable-pip-version-check "$1"
    fi
}

# cargo_tool NAME VERSION: a Rust program, not optimised: compiling it takes longer than all that it does here.
cargo_tool() {
    local root=$tools/$1-$2
    if [ ! -x "$root/bin/$1" ]; then
        echo "== installing $1 $2" >&2
        CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --debug --version "$2" --root "$root" "$1"
    fi
}

# python_environment REQUIREMENTS: prints the environment with the packages of this file of pinned requirements.
python_environment() {
    local environment
    environment=$tools/python-$(sha256sum "$1" | cut -c 1-16)
    if [ ! -e "$environment/complete" ]; then
        echo "== installing the packages of $1" >&2
        python_venv "$environment"
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
        debian_program npm
        mkdir -p "$environment"
        cp "$1/package.json" "$1/package-lock.json" "$1/.npmrc" "$environment"
        (cd "$environment" && npm ci --ignore-scripts --no-audit --no-fund --loglevel error) >&2
        touch "$environment/complete"
    fi
    echo "$environment"
}

# debian_program PROGRAM [PACKAGE]: installs the Debian package of a program that is missing.
debian_program() {
    command -v "$1" >/dev/null || debian_package "${2:-$1}"
}

debian_package() {
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    echo "== installing with apt-get: $1" >&2
    if ! command -v apt-get >/dev/null; then
        echo "apt-get was not found: install $1 manually, then run this command again" >&2
        return 1
    fi
    # Two checks may install at the same time, and apt-get refuses to run twice.
    mkdir -p "$tools"
    (
        flock 9
        "${as_root[@]}" apt-get update -q >&2
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$1" >&2
    ) 9>"$tools/apt-get.lock"
}

# Seconds until a started service must be ready: initdb on a busy machine.
SERVICE_START_TIMEOUT_S=90

free_ports() {
    python3 - <<'PYTHON'
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(listener.getsockname()[1] for listener in sockets))
PYTHON
}

# start_service [SETTING=VALUE...]: starts a sandbox service of the program $VOUCHSAFE on an empty data directory and free loopback ports,
# without rate limits, and exports PARTNER_URL, DOCS_URL, ADMIN_URL, DATA_DIR, VOUCHSAFE_API_KEY, VOUCHSAFE_API_SECRET and OPERATOR_TOKEN.
# It is stopped when the script exits; a script with a trap of its own calls stop_service there.
start_service() {
    local partner admin limit since=$SECONDS
    service_state=$(mktemp -d)
    # The Postgres user must be able to traverse it.
    chmod 755 "$service_state"
    [ -n "$(trap -p EXIT)" ] || trap stop_service EXIT
    read -r partner admin < <(free_ports)
    export DATA_DIR=$service_state/data DOCS_URL=http://127.0.0.1:$partner ADMIN_URL=http://127.0.0.1:$admin
    export PARTNER_URL=$DOCS_URL/api/v1
    for limit in ORDERS GENERAL AUTH VOUCHERS; do
        export "VOUCHSAFE_LIMIT_$limit=1000000/60"
    done
    env -u DATABASE_URL "$@" "$VOUCHSAFE" serve --data-dir "$DATA_DIR" --http-addr "127.0.0.1:$partner" \
        --admin-addr "127.0.0.1:$admin" --reconciliation-preview on \
        >"$service_state/out" 2>"$service_state/log" </dev/null &
    service_pid=$!
    until curl -sf -o "$service_state/ready" "$ADMIN_URL/readyz"; do
        if ! kill -0 "$service_pid" 2>/dev/null || [ $((SECONDS - since)) -gt "$SERVICE_START_TIMEOUT_S" ]; then
            tail -n 30 "$service_state/log" >&2
            echo "the service did not become ready" >&2
            return 1
        fi
        sleep 0.2
    done
    VOUCHSAFE_API_KEY=$(partner_field api_key)
    VOUCHSAFE_API_SECRET=$(partner_field api_secret)
    OPERATOR_TOKEN=$(tr -d '\n' <"$DATA_DIR/operator-token")
    export VOUCHSAFE_API_KEY VOUCHSAFE_API_SECRET OPERATOR_TOKEN
}

partner_field() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$DATA_DIR/sandbox-partner.json" "$1"
}

# The service stops its Postgres before it exits.
stop_service() {
    if [ -n "${service_pid:-}" ]; then
        kill "$service_pid" 2>/dev/null || true
        wait "$service_pid" || true
        service_pid=
    fi
    [ -z "${service_state:-}" ] || rm -rf "$service_state"
}

# verify_service: fails if an invariant of the service's database is broken, and shows it.
verify_service() {
    if ! "$VOUCHSAFE" verify --data-dir "$DATA_DIR" >"$service_state/verify"; then
        cat "$service_state/verify" >&2
        return 1
    fi
}

# field PATH: a field of the JSON on standard input, such as duplicate.passed or data.0.order_id; data.-1 is the last element.
field() {
    python3 -c 'import functools, json, sys
step = lambda value, name: value[int(name)] if isinstance(value, list) else value[name]
print(functools.reduce(step, sys.argv[1].split("."), json.load(sys.stdin, parse_float=str)))' "$1"
}
