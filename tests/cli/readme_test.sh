# The README's session prints what the README says: every command in it is run, every line shown must appear.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$dir" && mkdir build && ln -s "$COTENANT" build/cotenant || exit 1
bad=0 commands=0

awk '/^```/ { inside = !inside } inside && !/^```/' "$SRC/README.md" > session
while IFS= read -r line; do
    case $line in
    '$ '*)
        commands=$((commands + 1))
        sh -c "${line#??}" > said 2>&1 < /dev/null
        ;;
    '' | ... | 'make '*) ;;
    *) grep -qxF -- "$line" said || { echo "not printed: $line"; bad=1; } ;;
    esac
done < session
[ "$commands" -ge 5 ] || { echo "only $commands commands found"; bad=1; }
exit $bad
