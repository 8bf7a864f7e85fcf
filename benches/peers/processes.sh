#!/usr/bin/env bash
# Logistic regression of whole processes on LibSVM files with labels -1 and 1, from the text on: CPU seconds (user and system) and the log
# loss on the test file, of nnz, of Vowpal Wabbit and of liblinear. A program that is not installed is left out.
#
#     benches/peers/processes.sh TRAIN TEST [ROUNDS]
#
# A round runs each program once, in turn; the least CPU time of the rounds is printed. Programs: `nnz` as `cargo build --release -p nnz-cli` leaves it
# (or NNZ), `vw` by PyPI's vowpalwabbit (PYTHON), and liblinear's `train` by Debian's liblinear-tools.
set -euo pipefail
train=$(realpath "$1") test=$(realpath "$2") rounds=${3:-5}
nnz=${NNZ:-target/release/nnz} python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Text of Vowpal Wabbit, made before anything is timed.
for file in train test; do
    awk '{ printf "%s |", $1; for (i = 2; i <= NF; i++) printf " %s", $i; print "" }' "${!file}" >"$scratch/$file.vw"
done

run_nnz() {
    "$nnz" train --model logistic --data "$train" --epochs 1 --optimizer adagrad --learning-rate 0.1 --quiet --save "$scratch/nnz.model"
}
run_vw() {
    "$python" -m vowpalwabbit --loss_function logistic -d "$scratch/train.vw" -b 20 --passes 1 -f "$scratch/vw.model" --quiet
}
run_liblinear() {
    liblinear-train -s 0 -e 0.1 -q "$train" "$scratch/liblinear.model"
}

loss_nnz() {
    "$nnz" evaluate --model "$scratch/nnz.model" --data "$test" --unknown ignore --quiet --json | sed 's/.*"log_loss":\([0-9.e-]*\).*/\1/'
}
loss_vw() {
    "$python" -m vowpalwabbit -d "$scratch/test.vw" -t -i "$scratch/vw.model" --loss_function logistic 2>&1 | awk '/average loss/ { print $4 }'
}
# The first line of its predictions names the columns: `labels 1 -1`.
loss_liblinear() {
    liblinear-predict -b 1 "$test" "$scratch/liblinear.model" "$scratch/scores" >/dev/null
    awk 'NR == FNR { if (FNR == 1) { for (i = 2; i <= NF; i++) column[$i + 0] = i } else { p[FNR - 1, 1] = $column[1]; p[FNR - 1, -1] = $column[-1] }; next }
         { sum -= log(p[FNR, $1 + 0]) } END { printf "%.6f\n", sum / FNR }' "$scratch/scores" "$test"
}

has() {
    case $1 in
        nnz) [ -x "$nnz" ] ;;
        vw) "$python" -c 'import vowpalwabbit' 2>/dev/null ;;
        liblinear) command -v liblinear-train >/dev/null ;;
    esac
}

programs=()
for program in nnz vw liblinear; do
    if has "$program"; then programs+=("$program"); else echo "$program is not installed: left out" >&2; fi
done
TIMEFORMAT='%U %S'
for _ in $(seq "$rounds"); do
    for program in "${programs[@]}"; do
        { time "run_$program" >"$scratch/said" 2>&1; } 2>>"$scratch/$program.seconds" || {
            echo "$program failed:" >&2
            cat "$scratch/said" >&2
            exit 1
        }
    done
done
printf '| program | log loss on the test file | CPU seconds |\n|---|---|---|\n'
for program in "${programs[@]}"; do
    least=$(awk '{ print $1 + $2 }' "$scratch/$program.seconds" | sort -g | head -1)
    printf '| %s | %s | %s |\n' "$program" "$("loss_$program")" "$least"
done
