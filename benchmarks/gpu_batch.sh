#!/usr/bin/env bash
# Everything that needs a GPU, in stages of under ten minutes each, for a machine without network.
#
#   OUT=some/folder benchmarks/gpu_batch.sh 1      audit, cold and warm; published workload; input
#                                                  bits; GPU tests
#   OUT=some/folder benchmarks/gpu_batch.sh 2      10,000 control cases; the whole corpus judged and
#                                                  compared with the CPU's run; findings of both
#                                                  replayed; interpreter against GPU on every control
#   OUT=some/folder benchmarks/gpu_batch.sh 3      every operation of the interpreter against the
#                                                  GPU; the whole test suite
#   OUT=some/folder benchmarks/gpu_batch.sh 4      the clock: cheats, null pairs with the effort of
#                                                  `time` and of `run`, a planted slowdown
#   OUT=some/folder benchmarks/gpu_batch.sh 5      KernelBench's timing beside ours; the small study,
#                                                  judged and timed, in OUT/study.tar.gz
#   OUT=some/folder benchmarks/gpu_batch.sh 6      throughput with timing, the same kernels twice,
#                                                  what a process per candidate costs
#   OUT=some/folder benchmarks/gpu_batch.sh 7      PyTorch timed against itself on every suite
#   OUT=some/folder benchmarks/gpu_batch.sh 8      PyTorch judged on every suite; the clock on 150
#                                                  tasks
#   OUT=some/folder KERNELBENCH=checkout PROBLEMS=folder PUBLISHED=folder \
#     benchmarks/gpu_batch.sh 9                    KernelBench's own models judged and timed; CUDA
#                                                  C++ kernels an hour, of a published run
#
# Each stage leaves OUT/summary-N.txt and OUT/stage-N.tar.gz with all reports and logs; stage 2 also
# OUT/findings-gpu.tar.gz, a run to replay elsewhere. Nothing is installed. A step that runs past
# its own limit is ended and the stage goes on. PYTHON, WORKERS and MINUTES (of a stage) may be set.
set -u
stage=${1:?which stage: 1 to 9}
OUT=$(realpath -m "${OUT:?the folder for what comes back}")
cd "$(dirname "$0")/.." || exit 2
python=${PYTHON:-python3}
cores=$(nproc)
workers=${WORKERS:-$((cores < 16 ? cores : 16))}
deadline=$((SECONDS + 60 * ${MINUTES:-9} + 15))
work=$(mktemp -d)
reports=$work/stage-$stage
mkdir -p "$OUT" "$reports"
summary=$OUT/summary-$stage.txt
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
export XDG_CACHE_HOME=$work/cache
bench=benchmarks
cpu_run=${CPU_RUN:-$bench/findings/cpu}
gpu_findings=$work/findings-gpu

: >"$summary"

# step NAME SECONDS COMMAND...: runs it under a limit, logs it, and notes how it ended.
step() {
  local name=$1 limit=$2 left=$((deadline - SECONDS)) began=$SECONDS code
  shift 2
  if ((left < 15)); then
    echo "$name: not begun, the stage's time is spent" >>"$summary"
    return
  fi
  ((limit > left)) && limit=$left
  timeout -k 10 "$limit" "$@" >"$reports/$name.log" 2>&1
  code=$?
  local said=""
  ((code == 124 || code == 137)) && said=" (ended at its limit of $limit s)"
  echo "$name: exit code $code, $((SECONDS - began)) s$said" >>"$summary"
}

# show NAME LINES [PATTERN]: the part of a log that belongs in the summary.
show() {
  [[ -f $reports/$1.log ]] || return
  { echo "--- $1"; grep -E "${3:-.}" "$reports/$1.log" | tail -n "$2" | cut -c1-220; } >>"$summary"
}

# audit_suite NAME SECONDS SUITE [OPTION ...]: its document in reports/NAME.json.
audit_suite() {
  local name=$1 budget=$2 suite=$3
  shift 3
  step "$name" $((budget + 15)) sh -c '
    document=$1; shift; exec "$@" >"$document"' - "$reports/$name.json" "$python" -m kerneltruth \
    audit --suite "$suite" --device cuda:0 --budget "$budget" --json "$@"
}

script() { echo "$python" "$bench/$1.py" --device cuda:0 --results "$reports"; }

keep() {
  for document in "$reports"/judged-*.json "$reports"/timed-*.json; do
    [[ -s $document ]] && "$python" "$bench/suite_table.py" "$document" --machine "here" |
      tail -n +4 | head -n 12 | cut -c1-220 >>"$summary"
  done
  tar -czf "$OUT/stage-$stage.tar.gz" -C "$work" "stage-$stage"
  [[ -d $gpu_findings ]] && tar -czf "$OUT/findings-gpu.tar.gz" -C "$work" findings-gpu
  cat "$summary"
}
trap keep EXIT

{ nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  echo "$cores cores, $workers workers, $($python --version)"; } >>"$summary" 2>&1

case $stage in
1)
  step doctor 90 "$python" -m kerneltruth doctor
  step audit 200 $(script audit) --workers "$workers"
  step published_workload 120 $(script published_workload) --workers "$workers"
  step input_bits 90 "$python" "$bench/input_bits.py" --against "$bench/results/input_bits-cpu.json"
  step gpu_tests 300 "$python" -m pytest -q -m gpu tests/gpu --durations=8 -p no:cacheprovider
  show doctor 25
  show audit 30 '^[|*-]|aborted|Error|error'
  show published_workload 20 '^[|*-]|Error|error'
  show input_bits 14 '"(torch|python|all|count|differing|cpu|cuda:0|file)"|\]'
  show gpu_tests 30 'FAILED|ERROR|SKIPPED|passed|failed|^E  '
  ;;
2)
  step control_cases 270 $(script control_cases) --workers "$workers"
  step replay_make 150 $(script replay_across) make --run "$gpu_findings" --workers "$workers"
  step gpu_process_cost 60 $(script gpu_process_cost)
  step compare 30 "$python" -m kerneltruth compare "$cpu_run" "$gpu_findings"
  step replay_cpu 120 $(script replay_across) replay "$cpu_run" --workers "$workers"
  step fidelity_controls 200 $(script fidelity_controls) --workers "$workers"
  show control_cases 60 '^[|*-]|^flagged|Error|error'
  show replay_make 25 '^[|-]|Made|Error|error'
  show compare 25
  show replay_cpu 40 '^[|-]|Made|Error|error'
  show fidelity_controls 60 '^\*\*|^- |^\| (b?float|u?int|bool|contig|expand|mis|off|row|stri|trans)|rror'
  ;;
3)
  step fidelity 300 "$python" "$bench/interpreter_fidelity.py" \
    --shards "$workers" --out "$reports/interpreter_fidelity-gpu.md"
  step latency 90 $(script latency)
  step tests 420 "$python" -m pytest -q tests --durations=10 -p no:cacheprovider
  show fidelity 30
  show latency 12 '^[|*-]|`check`'
  show tests 40 'FAILED|ERROR|SKIPPED|passed|failed|^E  '
  ;;
4)
  step clock_tests 60 "$python" -m pytest -q -m gpu tests/gpu/test_time_gpu.py -p no:cacheprovider
  step clock_null 140 $(script clock_null)
  step clock_slowdown 130 $(script clock_slowdown) --trials 20
  step clock_null_run 100 $(script clock_null) --effort run
  step clock_cheats 130 $(script clock_cheats)
  for name in clock_tests clock_cheats clock_null clock_null_run clock_slowdown; do
    show "$name" 30
  done
  ;;
5)
  step clock_peer 300 $(script clock_peer)
  step small_study 480 "$python" "$bench/small_study.py" --device cuda:0 --part judge \
    --folder "$work/study"
  [[ -d $work/study ]] && tar -czf "$OUT/study.tar.gz" -C "$work" study
  show clock_peer 20
  show small_study 10
  ;;
6)
  again="$reports/again.json"
  step again_first 60 $(script clock_again) --out "$again"
  step batch_cost 90 $(script batch_cost)
  step clock_cost 420 $(script clock_cost) --attempts 160 --deadline 400
  step clock_again 60 $(script clock_again) --against "$again" ${EARLIER:-}
  step gpu_process_cost 60 $(script gpu_process_cost)
  for name in batch_cost clock_cost clock_again gpu_process_cost; do
    show "$name" 30
  done
  ;;
7)
  audit_suite timed-earlier 60 earlier --timed
  audit_suite timed-tritonbench 70 tritonbench --timed
  audit_suite timed-core 140 core --timed
  audit_suite timed-kernelbenchx $((deadline - SECONDS - 60)) kernelbenchx --timed
  ;;
8)
  for suite in earlier tritonbench core kernelbenchx; do
    audit_suite "judged-$suite" 90 "$suite"
  done
  step clock_many_tasks 420 $(script clock_many_tasks) --deadline 380
  show clock_many_tasks 30
  ;;
9)
  step cuda_throughput 200 $(script cuda_throughput) --suite "kernelbench:$PROBLEMS" \
    --candidates "$PUBLISHED" --only lean --limit 80 --deadline 165
  audit_suite judged-kernelbench 200 "kernelbench:$KERNELBENCH"
  audit_suite timed-kernelbench 120 "kernelbench:$KERNELBENCH" --timed
  show cuda_throughput 20
  ;;
*)
  echo "no stage $stage: there are 1 to 9" | tee -a "$summary"
  exit 2
  ;;
esac
