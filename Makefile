# Two commands matter: `make repl` to try Beamtalk, `make test` to check everything.

CARGO ?= cargo
ERLC ?= erlc
ERL ?= erl
BUILD := _build/runtime
# A full check builds every test once: incremental data would only double the disk it takes.
export CARGO_INCREMENTAL ?= 0
BEAMTALK = $(CARGO) run --quiet --release --package beamtalk-cli --
# The binary the Rust tests have just driven; a release build would only make the checks longer.
CHECKED = $(or $(CARGO_TARGET_DIR),target)/debug/beamtalk

# Tests wait for processes more than they compute: three times as many at a time as there are cores.
JOBS ?= $(shell expr 3 \* $$(nproc 2>/dev/null || sysctl -n hw.ncpu))
export RUST_TEST_THREADS ?= $(JOBS)
export NEXTEST_TEST_THREADS ?= $(JOBS)

# What Beamtalk and its tests need, as Debian packages: Erlang/OTP, tmux for the agents, networks and scripts of tests.
PACKAGES := erlang-base erlang-crypto erlang-eunit erlang-inets erlang-ssl fuse3 iproute2 jq python3 tmux
# Editors that save methods on a mounted tree.
SAVING_EDITORS := vim nano emacs
EDITOR_OF_vim := vim
EDITOR_OF_nano := nano
EDITOR_OF_emacs := emacs-nox

.PHONY: help setup tools browser saving-editors web build repl test lint checked test-rust test-runtime test-language test-web test-mcp mcp-clients bench-mcp test-editors test-vscode bench-web test-v9fs deny vscode properties campaign bench bench-quick bench-tools fuzz grammar clean

help:
	@echo "make repl       install Erlang and Node.js if they are missing, build, start a session"
	@echo "make test       everything that is checked before a change is accepted"
	@echo "make test-v9fs  the agents' tree mounted by a Linux kernel, in an emulated machine"
	@echo "make deny       licences, advisories and sources of the crates we use, by cargo-deny"
	@echo "make properties every property test with fifty times the cases"
	@echo "make campaign   1,000 random kills over all parts; SEED repeats a run"
	@echo "make fuzz       everything that reads bytes from outside, FUZZ_SECONDS (60) for each target"
	@echo "make test-mcp   the MCP server under clients of others and the official suite (from npm and PyPI)"
	@echo "make bench-mcp  figures of the MCP server beside their limits (14 minutes and twice MCP_SOAK, 600 s)"
	@echo "make bench      language benchmarks, with ratios to plain Erlang and how far they can be believed"
	@echo "make bench-quick the same in two minutes; bench/compare sets two runs side by side"
	@echo "make test-vscode the extension in a real VS Code, by Chromium; writes its screenshots"
	@echo "make vscode     the extension for VS Code, editors/vscode/beamtalk-*.vsix"
	@echo "make bench-web  figures of the browser workspace beside their limits"
	@echo "make grammar    the tree-sitter parser of editors/, after a change of its grammar"
	@echo "make setup      install what is missing, also for the tests"
	@echo "make clean      remove everything that was built"

# Which of OTP's applications must be there; tmux runs the agents' sessions.
OTP_APPLICATIONS := compiler crypto eunit inets public_key ssl
HAS_OTP := $(ERL) -noshell -noinput -eval 'halt(length([1 || A <- string:lexemes("$(OTP_APPLICATIONS)", " "), \
  code:lib_dir(list_to_atom(A)) =:= {error, bad_name}])).'
# The browser workspace is built with Node.js 18 or newer.
HAS_NODE := command -v npm >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null
AS_ROOT := if [ "$$(id -u)" = 0 ]; then as_root=; else as_root=sudo; fi
APT_INSTALL := $$as_root apt-get install --yes --no-install-recommends

# Everything: what is needed to build, and a browser and editors for the tests.
setup: tools browser saving-editors

# Erlang/OTP 25 or newer, tmux, Node.js and a Rust compiler; the rest is for tests.
tools:
	@if ! command -v $(CARGO) >/dev/null 2>&1; then \
	  echo "Rust is missing. Install it from https://rustup.rs and run this again." >&2; exit 1; fi
	@if command -v $(ERL) >/dev/null 2>&1 && command -v $(ERLC) >/dev/null 2>&1 \
	    && command -v tmux >/dev/null 2>&1 && command -v jq >/dev/null 2>&1 \
	    && command -v ip >/dev/null 2>&1 && command -v fusermount3 >/dev/null 2>&1 \
	    && [ -x /usr/bin/python3 ] && $(HAS_OTP); then \
	  true; \
	elif command -v apt-get >/dev/null 2>&1; then \
	  echo "Installing: $(PACKAGES)"; \
	  $(AS_ROOT); $$as_root apt-get update && $(APT_INSTALL) $(PACKAGES); \
	else \
	  echo "Erlang/OTP 25 or newer or tmux is missing." >&2; \
	  echo "  macOS:  brew install erlang tmux node" >&2; \
	  echo "  Fedora: sudo dnf install erlang tmux nodejs npm" >&2; \
	  echo "  Arch:   sudo pacman -S erlang tmux nodejs npm" >&2; \
	  echo "  other:  https://www.erlang.org/downloads" >&2; exit 1; \
	fi
	@if [ "$(BEAMTALK_WEB)" != none ] && ! { $(HAS_NODE); } && command -v apt-get >/dev/null 2>&1; then \
	  echo "Installing: nodejs npm"; \
	  $(AS_ROOT); $$as_root apt-get update && $(APT_INSTALL) nodejs npm || true; \
	fi

# Editors that the tests of the mounted tree save with; where there is no apt-get those that are missing are not tried.
saving-editors:
	@missing=; for editor in $(foreach editor,$(SAVING_EDITORS),$(editor):$(EDITOR_OF_$(editor))); do \
	  command -v $${editor%%:*} >/dev/null 2>&1 || missing="$$missing $${editor#*:}"; done; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "Installing:$$missing"; \
	  $(AS_ROOT); $$as_root apt-get update && $(APT_INSTALL) $$missing; fi

# Chromium for the tests of the browser workspace; without one they are skipped.
browser:
	@if [ "$(BEAMTALK_WEB)" = none ] || [ -n "$$CHROMIUM" ] || command -v chromium >/dev/null 2>&1 \
	    || command -v chromium-browser >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then true; else \
	  $(AS_ROOT); $$as_root apt-get update && $(APT_INSTALL) chromium; fi

# The page of the browser workspace, built when its sources changed; the binary embeds web/dist.
WEB_SOURCES := $(shell find web/src web/index.html web/build.mjs web/package.json web/package-lock.json -type f)
web: tools
	@if [ "$(BEAMTALK_WEB)" = none ]; then true; \
	elif $(HAS_NODE); then $(MAKE) --no-print-directory web/dist/index.html; \
	else echo "web: Node.js 18 with npm is missing; building without the browser workspace" >&2; fi

web/dist/index.html: web/node_modules/.build $(WEB_SOURCES)
	cd web && node build.mjs

# npm removes what it finds, so a mark inside says which packages are there: those to build, or the tests' too.
web/node_modules/.build: web/package-lock.json
	cd web && npm ci --ignore-scripts --omit=dev
	@touch $@

web/node_modules/.test: web/package-lock.json
	cd web && npm ci --ignore-scripts
	@touch web/node_modules/.build $@

build: tools web
	$(CARGO) build --release --package beamtalk-cli

repl: build
	@$(BEAMTALK) repl

test: setup web lint test-rust test-runtime test-language test-web test-editors

# Clippy is the compiler of the tests, so that one build says what it finds and gives what is run; this is how `cargo clippy`
# itself calls it, which would only check, and everything would be built a second time.
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings__CLIPPY_HACKERY__
CHECK := $(LINTED) $(CARGO)

lint:
	$(CARGO) fmt --all --check
	@$(MAKE) --no-print-directory checked

# Everything the tests run, built in the one way that all of them share: another selection of packages has other features of
# the crates we use, and would build those again.
checked:
	$(CHECK) test --workspace --no-run --quiet

test-rust: export BEAMTALK_EDITORS = $(if $(shell command -v apt-get),$(SAVING_EDITORS))
test-rust:
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
	  $(CHECK) nextest run --workspace --no-fail-fast; else $(CHECK) test --workspace --quiet --no-fail-fast; fi

# The runtime alone: no warnings, and EUnit for every module that has tests, each in a fresh node.
test-runtime:
	@rm -rf $(BUILD) && mkdir -p $(BUILD)
	$(ERLC) -Werror +debug_info -o $(BUILD) runtime/src/*.erl
	cp runtime/src/beamtalk.app.src $(BUILD)/beamtalk.app
	$(ERLC) -Werror +debug_info -I runtime/test -o $(BUILD) runtime/test/*.erl
	@printf '%s\n' $(basename $(notdir $(wildcard runtime/test/*_tests.erl))) \
	  | xargs -P $(JOBS) -I MODULE $(ERL) -noshell -noinput -pa $(BUILD) -eval "beamtalk_eunit:main('MODULE')."

# The library's examples, the conformance scripts and the tour, by the binary itself.
test-language: tools checked
	$(CHECKED) fmt --check lib bench/lang/beamtalk/src
	$(CHECKED) test --quiet lib
	$(CHECKED) test --quiet tests/lang
	$(CHECKED) test-docs README.md docs

# Neovim, Emacs where it is, a client of others and the VS Code extension, each with the real server.
EDITOR_PACKAGES := neovim python3-venv
test-editors: tools checked
	@if ! command -v nvim >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then \
	  $(AS_ROOT); $$as_root apt-get update && $(APT_INSTALL) $(EDITOR_PACKAGES); fi
	editors/test.sh $(CHECKED)

# The extension in a real VS Code (the server build that npm has, 0.6 GB below _build) with Chromium. Writes editors/vscode/shots.
test-vscode: setup checked
	cd editors/vscode && npm ci --silent && node real/run.mjs $(abspath $(CHECKED))

# The extension for VS Code as a .vsix, with nothing but the package registry.
vscode: tools
	cd editors/vscode && npm ci --silent && node build.mjs package

# The browser workspace: types, units, rules, budget, and the binary the Rust tests have just driven in a real browser.
test-web: setup web checked
	@if [ "$(BEAMTALK_WEB)" = none ] || ! { $(HAS_NODE); }; then echo "web: not built, not tested" >&2; else \
	  $(MAKE) --no-print-directory web/node_modules/.test && cd web && BEAMTALK_BINARY=$(abspath $(CHECKED)) node test.mjs; fi

# The MCP server under clients of others and the official suite, which come from npm and PyPI and bring a Node.js of their own.
MCP_CLIENTS := tests/mcp/clients
mcp-clients: tools
	cd $(MCP_CLIENTS) && npm ci --no-audit --no-fund --cache ./npm-cache && { [ -x venv/bin/python ] || python3 -m venv venv; } \
	  && venv/bin/pip install --quiet --requirement requirements.txt

test-mcp: mcp-clients checked
	$(MCP_CLIENTS)/run.sh $(CHECKED) $(dir $(CHECKED))examples/conformance
	FUZZ_LINES=1000000 $(CHECK) test --workspace --quiet --test fuzz

# The server's figures beside their limits, with a bare rmcp server as the floor; MCP_SOAK is how long it is asked without rest.
MCP_SOAK ?= 600
bench-mcp: build mcp-clients
	cd bench/mcp/echo && $(CARGO) build --release --quiet
	python3 bench/mcp/run.py --soak $(MCP_SOAK)

# The agents' tree under the kernel's own 9P client, in an emulated machine. Debian only.
V9FS_PACKAGES := busybox-static cpio qemu-system-x86 socat
test-v9fs: build
	@if ! command -v qemu-system-x86_64 >/dev/null 2>&1 || ! command -v socat >/dev/null 2>&1 \
	    || ! command -v busybox >/dev/null 2>&1 || ! command -v cpio >/dev/null 2>&1; then \
	  $(AS_ROOT); $$as_root apt-get update && $(APT_INSTALL) $(V9FS_PACKAGES); fi
	tests/v9fs/run.sh target/release/beamtalk

deny:
	@if ! $(CARGO) deny --version >/dev/null 2>&1; then \
	  echo "cargo-deny is missing: cargo install --locked cargo-deny" >&2; exit 1; fi
	$(CARGO) deny check

# Every property test with fifty times the 256 cases of a usual run. Found cases are kept in
# proptest-regressions or become tests of their own.
PROPERTY_CASES ?= 12800
properties:
	PROPTEST_CASES=$(PROPERTY_CASES) $(CHECK) test --workspace --quiet --no-fail-fast --lib --bins --test properties --test codec --test lint

# Random kills of daemon, node, bridge, worker, agents daemon, tmux, backends and supervisor, KILLS in all, and rounds of
# programs that try to outlive the loop. The seed is printed; SEED repeats it.
KILLS ?= 1000
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))
campaign: tools
	@echo "SEED=$(SEED)"
	BEAMTALK_SEED=$(SEED) BEAMTALK_KILLS=$(shell expr $(KILLS) / 2) $(CHECK) test --workspace --test workspace kills -- --nocapture
	BEAMTALK_SEED=$(SEED) BEAMTALK_KILLS=$(shell expr $(KILLS) / 4) $(CHECK) test --workspace --test agents kills -- --nocapture
	BEAMTALK_SEED=$(SEED) BEAMTALK_SECONDS=120 $(CHECK) test --workspace --test agents directions -- --nocapture
	BEAMTALK_SEED=$(SEED) BEAMTALK_KILLS=$(shell expr $(KILLS) / 4) BEAMTALK_ROUNDS=200 $(CHECK) test --workspace --test loop_tests -- --nocapture random_rounds random_kills

# The contenders are installed if they are missing.
BENCH_PACKAGES := elixir ruby
bench-tools: setup
	@if { ! command -v elixirc >/dev/null 2>&1 || ! command -v ruby >/dev/null 2>&1; } && command -v apt-get >/dev/null 2>&1; then \
	  $(AS_ROOT); $$as_root apt-get update && $(APT_INSTALL) $(BENCH_PACKAGES); fi

bench: build bench-tools
	python3 bench/lang/run.py --json _build/bench.json target/release/beamtalk

bench-quick: build bench-tools
	python3 bench/lang/run.py --quick --json _build/bench-quick.json target/release/beamtalk

bench-web: setup build web/node_modules/.test
	cd web && BEAMTALK_BINARY=$(abspath target/release/beamtalk) node test.mjs bench

# Each parser of outside bytes for FUZZ_SECONDS; FUZZ_TARGETS names some of them, FUZZ_RUNS ends each after so many inputs.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?=
fuzz:
	fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ_TARGETS)

# The parser for editors, made of its grammar; only after a change of grammar.js. Needs node.
grammar:
	cd editors/tree-sitter-beamtalk/generate && $(CARGO) run --quiet --locked

clean:
	$(CARGO) clean
	rm -rf _build web/dist web/node_modules web/.build web/.again
