#!/bin/sh
# Usage: finish-bundle.sh CSV BEFORE IMAGE
#
# Finishes the ClusterServiceVersion in the file CSV after `operator-sdk generate bundle`, which
# - leaves spec.cleanup out when nothing is cleaned up, which is worth saying;
# - lists no image in spec.relatedImages unless it pinned them to digests, and then leaves the annotation containerImage as it was;
# - stamps the time of the run, so that no two runs agree. Here createdAt is SOURCE_DATE_EPOCH if that is set, what it was in the
#   file BEFORE if nothing else changed, and else the time of the run.
set -eu
csv=$1 before=$2 image=${3:?the image}

pinned=$(sed -n "s|.* image: \(${image%:*}@sha256:[0-9a-f]*\)$|\1|p" "$csv" | head -n 1)
awk -v image="${pinned:-$image}" '
	/^    containerImage:/ { $0 = "    containerImage: " image }
	/^  customresourcedefinitions:/ { print "  cleanup:\n    enabled: false" }
	/^  relatedImages:/ { listed = 1 }
	/^  version:/ && !listed { print "  relatedImages:\n  - image: " image "\n    name: manager" }
	{ print }' "$csv" > "$csv.new"

created=
if test -n "${SOURCE_DATE_EPOCH:-}"; then
	format=+%Y-%m-%dT%H:%M:%SZ
	created=$(date -u -d "@$SOURCE_DATE_EPOCH" "$format" 2> /dev/null || date -u -r "$SOURCE_DATE_EPOCH" "$format")
elif test -f "$before"; then
	stamp='^    createdAt: '
	if test "$(grep -v "$stamp" "$before")" = "$(grep -v "$stamp" "$csv.new")"; then
		created=$(sed -n "s/$stamp\"\(.*\)\"/\1/p" "$before")
	fi
fi
awk -v created="$created" '
	created != "" && /^    createdAt: / { $0 = "    createdAt: \"" created "\"" }
	{ print }' "$csv.new" > "$csv"
rm "$csv.new"
