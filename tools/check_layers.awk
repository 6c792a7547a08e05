# Reads layers.txt and rooms.txt, then source files named FOLDER/FILE; reports forbidden includes.
# A folder's line comes after the lines of all folders it includes. -v folders="a b": the folders that exist;
# -v besides="a,b c,d": additional permissions, a may include b and c may include d.
function report(text) { print text; bad = 1 }

FILENAME ~ /layers\.txt$/ {
    if (/^#/ || !NF) next
    d = $1
    if (!sub(/:$/, "", d)) report(sprintf("layers.txt:%d: a line is \"folder: folders it may include\"", FNR))
    if ((d, d) in sees) report(sprintf("layers.txt:%d: %s has two lines", FNR, d))
    for (i = 2; i <= NF; i++) {
        if (!(($i, $i) in sees)) report(sprintf("layers.txt:%d: %s includes %s, which has no line above it", FNR, d, $i))
        sees[d, $i] = 1
    }
    sees[d, d] = 1
    next
}

FILENAME ~ /rooms\.txt$/ {
    if (/^#/ || !NF) next
    room = $1
    sub(/:$/, "", room)
    for (i = 2; i <= NF; i++) { apart_from[++n_apart] = room "/"; apart_to[n_apart] = $i "/" }
    next
}

FNR == 1 && !allowed {
    allowed = split(besides, all, " ") + 1
    for (i = 1; i < allowed; i++) {
        split(all[i], both, ",")
        sees[both[1], both[2]] = 1
    }
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
    target = $0
    sub(/^[^"<]*["<]/, "", target)
    sub(/[">].*/, "", target)
    quoted = /^[^<]*"/
    split(FILENAME, from, "/")
    n = split(target, to, "/")
    ours = quoted || ((to[1], to[1]) in sees)
    if (!ours || to[1] == "tests" || target ~ /\.pb-c\.h$/) next
    if (n < 2) report(sprintf("%s:%d: include by folder: \"%s/%s\"", FILENAME, FNR, from[1], target))
    else if (!((from[1], to[1]) in sees)) report(sprintf("%s:%d: %s/ must not include %s", FILENAME, FNR, from[1], target))
    else if (target ~ /_int\.h$/ && from[1] != to[1])
        report(sprintf("%s:%d: %s is internal to %s/", FILENAME, FNR, target, to[1]))
    for (i = 1; i <= n_apart; i++)
        if (index(FILENAME, apart_from[i]) == 1 && index(target, apart_to[i]) == 1)
            report(sprintf("%s:%d: rooms.txt: %s must not include %s", FILENAME, FNR, apart_from[i], target))
}

END {
    n = split(folders, all, " ")
    for (i = 1; i <= n; i++)
        if (!((all[i], all[i]) in sees)) report("layers.txt: no line for src/" all[i])
    exit bad
}
