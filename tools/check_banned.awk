# Reads banned.txt, then source files named FOLDER/FILE; reports calls that are on the list.
FILENAME ~ /banned\.txt$/ {
    if (/^#/ || !NF) next
    if ($1 == "may") { may[$2] = 1; next }
    where[++n] = $1; call[n] = $2
    split($2, part, "(")
    pattern[n] = "(^|[^A-Za-z0-9_])" part[1] "[ \t]*[(][ \t]*" part[2]
    $1 = $2 = ""; sub(/^ +/, ""); why[n] = $0
    next
}

FNR == 1 { library = FILENAME !~ /^cli\// && !(FILENAME in may) }

/[(]/ {
    code = $0
    gsub(/\\./, "", code)
    gsub(/"[^"]*"/, "\"\"", code)
    sub(/\/\/.*/, "", code)
    for (i = 1; i <= n; i++)
        if ((where[i] == "src" || library) && code ~ pattern[i]) {
            printf "%s:%d: %s: %s\n", FILENAME, FNR, call[i], why[i]; bad = 1
        }
}
END { exit bad }
