#!/usr/bin/env bash
# Logistic regression of Vowpal Wabbit on LibSVM files with labels -1 and 1: seconds of learning, mean log loss on the test file.
#
#     benches/peers/vowpal_wabbit.sh TRAIN TEST PASSES [OPTION…]
set -euo pipefail
train=$1 test=$2 passes=$3
shift 3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
vw() { "${PYTHON:-python3}" -m vowpalwabbit --loss_function logistic "$@"; }
for file in train test; do
    awk '{ printf "%s |", $1; for (i = 2; i <= NF; i++) printf " %s", $i; print "" }' "${!file}" >"$scratch/$file"
done
# The first pass makes the cache of parsed rows that the others read, and is timed with them.
time vw -d "$scratch/train" -b 20 --passes "$passes" --cache_file "$scratch/cache" --holdout_off -f "$scratch/model" --quiet "$@"
vw -d "$scratch/test" -t -i "$scratch/model" 2>&1 | grep "average loss"
