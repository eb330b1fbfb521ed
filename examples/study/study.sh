#!/bin/sh
# A whole small study, offline: recorded replies, judged, analysed, and on one page.
#
#   sh examples/study/study.sh [FOLDER [PART]]
#
# The results go to FOLDER, else to runs/study. PART is judge (what needs the device) or tell (what
# reads its results, perhaps elsewhere); without it, both are done.
#
# KERNELTRUTH names the command, if it is not on the path. What was stopped goes on when the same
# command is repeated.
set -eu

here=$(dirname "$0")
out=${1:-runs/study}
part=${2:-all}
kt=${KERNELTRUTH:-kerneltruth}
# With fewer cases some of the planted mistakes are not met.
cases=32
# Some of the mistakes show on transposed and non-finite inputs only.
contract=torch

ask() {
  method=$1
  shift
  "$kt" generate --suite kernelbenchx --method "$method" \
    --seed 0 --model "replay:$here/replies/$method.jsonl" --out "$out/answers/$method" "$@"
}

if [ "$part" != tell ]; then
  ask one_shot
  ask best_of_n --samples 3
  ask refine --rounds 3 --cases "$cases" --contract "$contract"
  "$kt" run --suite kernelbenchx --candidates "$out/answers" --cases "$cases" --contract "$contract" \
    --peer-checks --seed 0 --out "$out/run"
fi
if [ "$part" != judge ]; then
  "$kt" analyze "$out/run"
  "$kt" report "$out/run" -o "$out/report.html" --title "A small study, offline"
fi
