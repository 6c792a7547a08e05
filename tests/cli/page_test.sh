#!/bin/sh
# Pages of comparisons in a headless browser: every chart is drawn without errors.
set -eu
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "skipped: no chromium to show the page"
    exit 77
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$COTENANT" node compare --mix light --policies planaria,slack --seeds 2 --requests 60 -o "$dir/node.html" >/dev/null
"$COTENANT" chip compare --load 0.5,0.9 --bandwidth 16,8 --policies edf,dream,relmas --traces 2 --requests 40 \
    -o "$dir/chip.html" >/dev/null
"$COTENANT" cluster compare --trace synth:philly_small,synth:openb_small --policies fifo,srtf --seeds 2 --jobs 60 \
    -o "$dir/cluster.html" >/dev/null
for page in node chip cluster; do
    charts=$(grep -c '<canvas' "$dir/$page.html")
    HOME=$dir "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$dir/profile" \
        --virtual-time-budget=5000 --enable-logging=stderr --dump-dom "file://$dir/$page.html" >"$dir/dom" 2>"$dir/log" || {
        tail -n 5 "$dir/log"
        echo "skipped: the browser does not run here"
        exit 77
    }
    if grep -q 'CONSOLE' "$dir/log"; then grep 'CONSOLE' "$dir/log"; exit 1; fi
    grep -q "data-charts=\"$charts\"" "$dir/dom" || { echo "$page: not all of $charts charts were drawn"; exit 1; }
done
