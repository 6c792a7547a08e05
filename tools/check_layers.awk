# Reads layers.txt and rooms.txt, then source files named FOLDER/FILE; complains about includes that cross a line.
# A folder must stand below all it leans on; have -v folders="a b" name those that exist, and
# -v besides="a,b c,d" what may be seen though it is not below: b by a, d by c.
function complain(text) { print text; bad = 1 }

FILENAME ~ /layers\.txt$/ {
    if (/^#/ || !NF) next
    d = $1
    if (!sub(/:$/, "", d)) complain(sprintf("layers.txt:%d: a line is \"folder: folders it may include\"", FNR))
    if ((d, d) in sees) complain(sprintf("layers.txt:%d: %s has two lines", FNR, d))
    for (i = 2; i <= NF; i++) {
        if (!(($i, $i) in sees)) complain(sprintf("layers.txt:%d: %s leans on %s, which is not above it", FNR, d, $i))
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
    if (n < 2) complain(sprintf("%s:%d: write the folder: \"%s/%s\"", FILENAME, FNR, from[1], target))
    else if (!((from[1], to[1]) in sees)) complain(sprintf("%s:%d: %s/ may not see %s", FILENAME, FNR, from[1], target))
    else if (target ~ /_int\.h$/ && from[1] != to[1])
        complain(sprintf("%s:%d: %s is %s/'s own", FILENAME, FNR, target, to[1]))
    for (i = 1; i <= n_apart; i++)
        if (index(FILENAME, apart_from[i]) == 1 && index(target, apart_to[i]) == 1)
            complain(sprintf("%s:%d: rooms.txt: %s may not see %s", FILENAME, FNR, apart_from[i], target))
}

END {
    n = split(folders, all, " ")
    for (i = 1; i <= n; i++)
        if (!((all[i], all[i]) in sees)) complain("layers.txt: no line for src/" all[i])
    exit bad
}
