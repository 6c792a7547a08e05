# check_names reports headers or public types with the same name, and nothing else.
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/src/base" "$dir/src/node" || exit 1
bad=0
put() { printf '%s\n' "$2" > "$dir/src/$1"; }
passes() { "$SRC/tools/check_names" "$dir" > "$dir/said" || { echo "wrongly caught: $1"; cat "$dir/said"; bad=1; }; }
caught() { # NAME TEXT of node/two.h
    put node/two.h "$2"
    if "$SRC/tools/check_names" "$dir" > "$dir/said"; then echo "not caught: $2"; bad=1; fi
    grep -q "$1" "$dir/said" || { echo "no word of: $1"; cat "$dir/said"; bad=1; }
}

put base/one.h 'typedef struct Queue {
    int n;
} Queue;
typedef void QueueFn(void *self, int i);
typedef int64_t QueueNs;'
put node/two.h 'typedef struct Queue Queue;
typedef struct QueueItem {
    Queue *of;
} QueueItem;'
passes 'a forward declaration and another type'
caught 'type Queue:' 'struct Queue { int n; };'
caught 'type Queue:' 'typedef enum Queue { A, B } Queue;'
caught 'type QueueFn:' 'typedef int QueueFn(void);'
caught 'type QueueNs:' 'typedef double QueueNs;'
put node/two.h 'int x;'
passes 'different names'
put node/one.h 'int y;'
caught 'header one.h:' 'int x;'
exit $bad
