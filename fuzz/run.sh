#!/bin/sh
# Run a target, or all of them, for a number of seconds with the compiler at hand:
#   fuzz/run.sh 60 [parse|ninep_decode|agents_text]
# cargo-fuzz adds address checks, but needs a nightly compiler; this needs a C++ compiler only.
set -e
seconds=${1:-60}
cd "$(dirname "$0")"
export RUSTFLAGS="--cfg fuzzing -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks -Cpasses=sancov-module \
 -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
 -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# A target of its own, so that build scripts are not instrumented.
host=$(rustc -vV | sed -n 's/^host: //p')
for target in ${2:-parse ninep_decode agents_text}; do
  mkdir -p "corpus/$target" artifacts
  cargo build --quiet --release --target "$host" --bin "$target"
  failed=${failed:-0}
  "${CARGO_TARGET_DIR:-target}/$host/release/$target" "corpus/$target" -max_total_time="$seconds" \
    -artifact_prefix="artifacts/$target-" -rss_limit_mb=2048 -timeout=10 -max_len=8192 -print_final_stats=1 || failed=1
done
exit $failed
