#!/bin/sh
# SPDX-License-Identifier: MIT
# Whether a policy has become worse on recorded work than it was at an earlier commit.
#
#	RECORDING=traces/server POLICY=policies/mine.bpf.c FAIL_IF='wakeup_p99 > +5%' gate.sh
#
#	RECORDING	folder that `schedlab record` or `import` left, or any run
#	POLICY		the policy's file, in a git checkout with its history
#	BASE		commit to compare with; default: origin/HEAD
#	FAIL_IF		conditions of `schedlab compare --fail-if`, one a line
#	SEEDS		default: 20, for policies that draw numbers; the others are the same with each
#	OUT		folder for what is left: report.html, junit.xml, before/, now/; default: schedlab-gate
#
# Exits 0 where it passes, 1 where a condition holds or a run has failed, 2 where it cannot tell.
set -eu

missing() {
	echo "gate.sh: $1" >&2
	exit 2
}

[ -f "${RECORDING:?}/run.json" ] || missing "RECORDING $RECORDING has no run.json: record or import it first"
[ -f "${POLICY:?}" ] || missing "POLICY $POLICY: no such file"
[ -n "${FAIL_IF:?}" ]
BASE=${BASE:-origin/HEAD} OUT=${OUT:-schedlab-gate} SEEDS=${SEEDS:-20}
git rev-parse --quiet --verify "$BASE^{commit}" >/dev/null ||
	missing "BASE $BASE is no commit here; fetch the history (GitHub: fetch-depth: 0, GitLab: GIT_DEPTH: 0)"

rm -rf "$OUT"
mkdir -p "$OUT/source"
# All of the commit, since a policy may include files beside it.
git archive "$BASE" | tar -x -C "$OUT/source"
[ -f "$OUT/source/$POLICY" ] || missing "POLICY $POLICY is not in $BASE: there is nothing to compare with"

schedlab replay "$RECORDING" --policy "$OUT/source/$POLICY" --seeds "$SEEDS" --out "$OUT/before"
schedlab replay "$RECORDING" --policy "$POLICY" --seeds "$SEEDS" --out "$OUT/now"
schedlab report "$OUT/now" --out "$OUT/report.html"

set --
while IFS= read -r condition; do
	[ -z "$condition" ] || set -- "$@" --fail-if "$condition"
done <<END
$FAIL_IF
END
schedlab compare "$OUT/before" "$OUT/now" "$@" --junit "$OUT/junit.xml"
