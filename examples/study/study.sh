#!/bin/sh
# A whole small study, offline: recorded replies, judged, analysed, and on one page.
#
#   sh examples/study/study.sh [FOLDER]     the results go to FOLDER, else to runs/study
#
# KERNELTRUTH names the command, if it is not on the path. What was stopped goes on when the same
# command is repeated.
set -eu

here=$(dirname "$0")
out=${1:-runs/study}
kt=${KERNELTRUTH:-kerneltruth}
# With fewer cases some of the planted mistakes are not met.
cases=32

ask() {
  method=$1
  shift
  "$kt" generate --suite kernelbenchx --method "$method" \
    --model "replay:$here/replies/$method.jsonl" --out "$out/answers/$method" "$@"
}

ask one_shot
ask best_of_n --samples 3
ask refine --rounds 3 --cases "$cases"

"$kt" run --suite kernelbenchx --candidates "$out/answers" --cases "$cases" --baselines \
  --out "$out/run"
"$kt" analyze "$out/run"
"$kt" report "$out/run" -o "$out/report.html" --title "A small study, offline"
