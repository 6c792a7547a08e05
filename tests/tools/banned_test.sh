# check_banned reports calls only: not comments, strings or longer names.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/base" "$dir/cli" && cd "$dir" || exit 1
bad=0

said() { echo "$2" > "$1"; awk -f "$SRC/tools/check_banned.awk" "$SRC/tools/banned.txt" "$1"; }
refused() { if said "$1" "$2" > out; then echo "not caught in $1: $2"; bad=1; fi; }
allowed() { said "$1" "$2" || { echo "wrongly caught in $1: $2"; bad=1; }; }

refused base/a.c 'n = sprintf(out, "%d", x);'
refused base/a.c '    strcpy (to, from);'
refused cli/a.c 'int n = rand() % 6;'
refused cli/a.c 'now = time(NULL);'
refused base/a.c 'puts("hello");'
refused base/a.c 'fprintf(stderr, "oops");'
allowed cli/a.c 'puts("hello");'
allowed base/err.c 'fprintf(stderr, "assertion failed");'
allowed base/a.c 'fprintf(out, "a row");'
allowed base/a.c 'n = snprintf(out, size, "%d", x);'
allowed base/a.c 'x = 1;  // never strcpy(a, b)'
allowed base/a.c 'why = "say \"system(1)\" twice";'
allowed base/a.c 'run_time(x); my_rand(y);'
exit $bad
