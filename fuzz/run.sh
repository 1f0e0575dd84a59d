#!/bin/sh
# Fuzz the targets, or those named, each for some time:
#   fuzz/run.sh [SECONDS [TARGET...]]
#   FUZZ_RUNS=10000000 fuzz/run.sh 36000 etf     ends after that many inputs too
# The driver in fuzz/src does it, which needs nothing but the compiler at hand, stable or nightly. FUZZ_ENGINE=libfuzzer uses
# libFuzzer and address checks instead, with a nightly compiler and cargo-fuzz. Both keep what reaches new code in
# fuzz/corpus/TARGET and put what fails into fuzz/artifacts.
set -e
cd "$(dirname "$0")"
seconds=${1:-60}
[ $# -gt 0 ] && shift
all="source source_grammar etf wire ninep manifest loop_config loop_head yaml agents_text gate change_log mcp"
host=$(rustc -vV | sed -n 's/^host: //p')
failed=0
for target in ${*:-$all}; do
  mkdir -p "corpus/$target" artifacts
  if [ "${FUZZ_ENGINE:-own}" = libfuzzer ]; then
    case $target in
      source) seeds="seeds/source ../lib" ;;
      source_grammar) seeds=seeds/choices ;;
      loop_head | gate) seeds=seeds/head ;;
      agents_text) seeds=seeds/text ;;
      *) seeds=seeds/$target ;;
    esac
    cargo +nightly fuzz run --fuzz-dir libfuzzer "$target" "corpus/$target" $seeds -- -max_total_time="$seconds" \
      ${FUZZ_RUNS:+-runs="$FUZZ_RUNS"} -artifact_prefix="artifacts/$target-" -rss_limit_mb=2048 -timeout=10 -max_len=4096 \
      -print_final_stats=1 || failed=1
  else
    case $target in
      source*) features=source ;;
      loop_*) features=loop_config ;;
      yaml | agents_text) features=agents ;;
      gate | change_log) features=workspace ;;
      *) features=$target ;;
    esac
    # A host of its own in the command line keeps the counters out of build scripts.
    RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters" \
      cargo build --quiet --release --target "$host" --bin "$target" --features "$features"
    "${CARGO_TARGET_DIR:-target}/$host/release/$target" --seconds "$seconds" ${FUZZ_RUNS:+--runs "$FUZZ_RUNS"} \
      ${FUZZ_SEED:+--seed "$FUZZ_SEED"} || failed=1
  fi
done
exit $failed
