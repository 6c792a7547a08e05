# check_layers accepts the tree and reports forbidden includes that are planted in a copy of it.
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
cp -r "$SRC/src" "$SRC/tools" "$copy" || exit 1
mkdir "$copy/tests"
bad=0

clean() {
    said=$("$copy/tools/check_layers") || { echo "a clean tree fails: $said"; bad=1; }
}

caught() { # WORDS: the check fails and prints them
    if said=$("$copy/tools/check_layers"); then echo "not caught: $1"; bad=1; return; fi
    case $said in *"$1"*) ;; *) echo "no word of '$1' in: $said"; bad=1 ;; esac
}

plant() { # FILE LINE WORDS: creates a file that the check must report, then removes it
    mkdir -p "$(dirname "$copy/$1")"
    echo "$2" > "$copy/$1"
    caught "$3"
    rm "$copy/$1"
}

clean
plant src/base/planted.c '#include "model/graph.h"' 'base/planted.c:1: base/ must not include model/graph.h'
plant src/model/planted.h '  #  include "compile/interp/run_ops.h"' 'model/ must not include compile/interp/run_ops.h'
plant src/model/planted.c '#include <kernel/nd_iter.h>' 'model/ must not include kernel/nd_iter.h'
plant src/kernel/planted.def '#include "model/op.h"' 'kernel/ must not include model/op.h'
plant src/model/planted.c '#include "graph.h"' 'include by folder'
plant src/kernel/ref/planted.c '#include "kernel/vec/vec.h"' 'kernel/ref/ must not include kernel/vec/vec.h'
plant src/policy/chip/planted.c '#include "policy/cluster/common/quota.h"' 'must not include policy/cluster/common/quota.h'
plant src/compile/planted.c '#include "model/graph_int.h"' 'is internal to model/'
plant tests/base/planted_test.c '#include "model/graph.h"' 'base/ must not include model/graph.h'
plant src/cluster/planted.c '#include "policy/policies.h"' 'cluster/ must not include policy/policies.h'
plant src/stray/planted.c '' 'no line for src/stray'
rmdir "$copy/src/stray" "$copy/tests/base"
clean

layers=$copy/tools/layers.txt
cp "$layers" "$layers.kept"
sed 's/^base:.*/base: model/' "$layers.kept" > "$layers"
caught 'base includes model, which has no line above it'
cp "$layers.kept" "$layers"
echo 'model: base' >> "$layers"
caught 'model has two lines'
exit $bad
