# The layer check passes a clean tree and catches what crosses a line: tried on a planted copy.
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT
cp -r "$SRC/src" "$SRC/tools" "$copy" || exit 1
mkdir "$copy/tests"
bad=0

clean() {
    said=$("$copy/tools/check_layers") || { echo "a clean tree is refused: $said"; bad=1; }
}

caught() { # WORDS: the check fails and says them
    if said=$("$copy/tools/check_layers"); then echo "not caught: $1"; bad=1; return; fi
    case $said in *"$1"*) ;; *) echo "no word of '$1' in: $said"; bad=1 ;; esac
}

plant() { # FILE LINE WORDS: a file that must be caught, and taken away again
    mkdir -p "$(dirname "$copy/$1")"
    echo "$2" > "$copy/$1"
    caught "$3"
    rm "$copy/$1"
}

clean
plant src/base/planted.c '#include "model/graph.h"' 'base/planted.c:1: base/ may not see model/graph.h'
plant src/model/planted.h '  #  include "compile/interp/run_ops.h"' 'model/ may not see compile/interp/run_ops.h'
plant src/model/planted.c '#include <kernel/nd_iter.h>' 'model/ may not see kernel/nd_iter.h'
plant src/kernel/planted.def '#include "model/op.h"' 'kernel/ may not see model/op.h'
plant src/model/planted.c '#include "graph.h"' 'write the folder'
plant src/kernel/ref/planted.c '#include "kernel/vec/vec.h"' 'kernel/ref/ may not see kernel/vec/vec.h'
plant src/policy/chip/planted.c '#include "policy/cluster/common/quota.h"' 'may not see policy/cluster/common/quota.h'
plant src/compile/planted.c '#include "model/graph_int.h"' "model/'s own"
plant tests/base/planted_test.c '#include "model/graph.h"' 'base/ may not see model/graph.h'
plant src/cluster/planted.c '#include "policy/policies.h"' 'cluster/ may not see policy/policies.h'
plant src/stray/planted.c '' 'no line for src/stray'
rmdir "$copy/src/stray" "$copy/tests/base"
clean

layers=$copy/tools/layers.txt
cp "$layers" "$layers.kept"
sed 's/^base:.*/base: model/' "$layers.kept" > "$layers"
caught 'base leans on model, which is not above it'
cp "$layers.kept" "$layers"
echo 'model: base' >> "$layers"
caught 'model has two lines'
exit $bad
