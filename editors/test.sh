#!/bin/sh
# Real editors and an independent client against the real server. test.sh BINARY [neovim|emacs|helix|pygls|vscode]...
# A tool that is not installed is named and left out; a fault of one that is ends the run.
set -eu
binary=$(realpath "$1"); shift
ROOT=$(cd "$(dirname "$0")/.." && pwd); export ROOT
work=$(mktemp -d "${TMPDIR:-/tmp}/beamtalk-editors-XXXXXX")
# Also after a run that was cut off: no workspace of a test outlives it.
clean() {
  for left in "$work"/beamtalk-vscode-*/; do
    [ -d "$left" ] && (cd "$left" && BEAMTALK_HOME="$left/home" "$binary" workspace stop >/dev/null 2>&1) || true
  done
  rm -rf "$work"
}
trap clean EXIT
mkdir -p "$work/bin" "$work/config/nvim/parser" "$work/config/nvim/queries/beamtalk"
ln -s "$binary" "$work/bin/beamtalk"
export PATH="$work/bin:$PATH" BEAMTALK_HOME="$work/home"

# Nothing of the user's own settings; package managers keep theirs.
alone() {
  HOME="$work" XDG_CONFIG_HOME="$work/config" XDG_DATA_HOME="$work/data" XDG_STATE_HOME="$work/state" \
    XDG_CACHE_HOME="$work/cache" timeout 90 "$@"
}

# A project of its own for each, as some change its files.
project() {
  PROJECT="$work/$1"; export PROJECT
  mkdir -p "$PROJECT/src"
  printf '[package]\nname = "shop"\nversion = "0.1.0"\n' >"$PROJECT/beamtalk.toml"
  cat >"$PROJECT/src/Lamp.bt" <<'SOURCE'
/// Gives light.
Actor subclass: Lamp
  state: on = false

  /// Switches over.
  toggle => self.on := self.on not
SOURCE
}

missing() { echo "editors: no $1, its session is left out ($2)"; }

neovim() {
  command -v nvim >/dev/null || { missing nvim "apt install neovim"; return; }
  project neovim
  # As docs/editors.md says.
  grammar="$ROOT/editors/tree-sitter-beamtalk"
  cc -O1 -shared -fPIC -I "$grammar/src" "$grammar/src/parser.c" "$grammar/src/scanner.c" -o "$work/config/nvim/parser/beamtalk.so"
  cp "$grammar"/queries/*.scm "$work/config/nvim/queries/beamtalk/"
  cd "$PROJECT" && alone nvim --headless -u NONE -i NONE -c "luafile $ROOT/editors/neovim/session.lua"
  echo
}

emacs_session() {
  command -v emacs >/dev/null || { missing emacs "apt install emacs-nox elpa-eglot"; return; }
  emacs --batch --eval "(progn (require 'package) (package-activate-all) (unless (locate-library \"eglot\") (kill-emacs 1)))" 2>/dev/null \
    || { missing eglot "apt install elpa-eglot"; return; }
  project emacs
  cd "$PROJECT" && alone emacs --batch -l "$ROOT/editors/emacs/session.el"
}

helix() {
  command -v hx >/dev/null || { missing hx "Debian 13: apt install hx"; return; }
  project helix
  cd "$PROJECT" && alone python3 "$ROOT/editors/helix/session.py"
}

pygls() {
  venv="$ROOT/_build/pygls"
  [ -x "$venv/bin/python" ] || { [ -n "${PYTHON:-}" ] || PYTHON=python3; "$PYTHON" -m venv "$venv" 2>/dev/null \
    && "$venv/bin/pip" --quiet --disable-pip-version-check install -r "$ROOT/editors/pygls/requirements.txt"; } \
    || { rm -rf "$venv"; missing "Python with venv and pip" "apt install python3-venv"; return; }
  project pygls
  cd "$PROJECT" && alone "$venv/bin/python" "$ROOT/editors/pygls/session.py"
}

vscode() {
  command -v npm >/dev/null || { missing npm "Node 18 or newer"; return; }
  cd "$ROOT/editors/vscode"
  [ -d node_modules/vscode-languageclient ] || npm ci --silent
  BEAMTALK="$binary" TMPDIR="$work" timeout 120 node test.mjs
}

[ $# -gt 0 ] || set -- neovim emacs helix pygls vscode
for part in "$@"; do
  case $part in emacs) (emacs_session) ;; neovim | helix | pygls | vscode) ("$part") ;; *) echo "editors: no part $part" >&2; exit 2 ;; esac
done
